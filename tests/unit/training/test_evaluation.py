"""Metrics of a language model over words and characters, against the text of its records."""

import math
import random
import unicodedata

import pytest
import tensorflow as tf

from data_prep.pipelines.prepare import prepare
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.checkpoints.model_directory import create_model_dir
from official.xlnet.data.pretraining_dataset import pretraining_dataset
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.evaluation import _text_units, evaluate
from tests.helpers.corpora import (
    as_text,
    chinese_documents,
    chinese_vocabulary,
    random_documents,
    vocabulary_dir,
)
from tests.helpers.tiny import tiny_config

REUSE = 11


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    (directory / "text.txt").write_text(as_text(random_documents(random.Random(1), 30)))
    text = [str(directory / "text.txt")]
    prepare(text, vocabulary_dir(), make_config("causal"), str(directory / "out"), num_workers=1)
    return directory / "out"


def make_config(kind):
    settings = {"vocab_size": 211, "seq_len": 29, "reuse_len": REUSE, "num_lanes": 3}
    split = {"heldout_fraction": 0.3, "bidirectional": "false", "batch_size": 3}
    return tiny_config(**settings, **split, **{"objective.kind": kind})


def make_model(kind, directory):
    config = make_config(kind)
    model = XLNetPretrainer(config)
    create_model_dir(directory, config, f"{vocabulary_dir()}/spiece.model")
    tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 1).save()


def test_words_and_characters_are_those_of_the_text(data, tmp_path):
    make_model("causal", str(tmp_path))
    metrics = evaluate(str(tmp_path), str(data))
    tokenizer = load_tokenizer(str(tmp_path))
    text, targets = "", 0
    for record in tf.data.TFRecordDataset(sorted(map(str, data.glob("heldout-*.tfrecord")))):
        feature = tf.train.Example.FromString(record.numpy()).features.feature
        ids = [i for i in feature["token_ids"].int64_list.value[1 : REUSE + 1] if i >= 9]
        text += "".join(map(tokenizer.id_to_piece, ids)).replace("▁", " ")
        targets += len(ids)
    assert metrics["targets"] == targets
    assert (metrics["words"], metrics["characters"]) == (text.count(" "), len(text))
    nats = metrics["loss"] * targets
    assert metrics["word_perplexity"] == pytest.approx(math.exp(nats / text.count(" ")))
    assert metrics["bits_per_character"] == pytest.approx(nats / math.log(2) / len(text))


def test_words_without_spaces_are_pieces_that_begin_with_a_letter(tmp_path):
    lines = ["\n".join(document) for document in chinese_documents(2, 40)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines))
    config = make_config("causal")
    config.set("data.keep_accents=true")
    data, vocab = str(tmp_path / "data"), f"{chinese_vocabulary()}/spiece.model"
    prepare([str(tmp_path / "text.txt")], vocab, config, data, num_workers=1)
    tokenizer = Tokenizer(vocab)
    words, expected = _text_units(tokenizer)[0], 0
    for lane in pretraining_dataset(data, 3, "heldout").take(2):
        for i in lane["token_ids"].numpy().ravel():
            piece = tokenizer.id_to_piece(i)
            name = unicodedata.name(piece[0])
            is_word = piece[0] == "▁" or name.startswith("CJK UNIFIED")
            assert words[i] == is_word, piece
            expected += is_word
    assert expected > 99
