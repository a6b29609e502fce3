"""`extend_vocabulary`: the rows of new pieces by hand, all else as it was, in every format."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from data_prep.corpus.vocabulary import read_sample
from data_prep.corpus.vocabulary_extension import extend_vocabulary
from data_prep.settings import SampleOptions
from official import xlnet
from official.xlnet.checkpoints.pretrained_directory import load_pretrainer
from official.xlnet.checkpoints.saving import save_pretrained
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from tests.helpers.compare import assert_refused
from tests.helpers.compiled import make_model
from tests.helpers.corpora import domain_text, vocabulary_dir
from tests.helpers.served_models import mixed_texts
from tests.helpers.tiny import randomize

OLD, NEW = 211, 19
VOCABULARY = f"{vocabulary_dir()}/spiece.model"


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
    path = tmp_path_factory.mktemp("domain") / "domain.txt"
    path.write_text(domain_text(), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def general(tmp_path_factory):
    """A pre-trained model with random weights in all its parts."""
    directory = str(tmp_path_factory.mktemp("general") / "model")
    model = make_model(vocab_size=OLD, auxiliary=["next_sentence", "capitalization"])
    randomize(model.encoder.variables + model.lm_head.variables)
    save_pretrained(model, directory, VOCABULARY)
    return directory


@pytest.fixture(scope="module")
def extended(general, domain, tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("extended") / "model")
    result = xlnet.extend_vocabulary(general, [domain], directory, NEW)
    assert result["vocab_size"] == OLD + NEW and result["new_pieces"] == NEW
    assert result["tokens_after"] < result["tokens_before"]
    return directory


def test_the_same_extension_again_leaves_its_folder_as_it_is(general, domain, extended):
    before = [(x.stat().st_ino, x.stat().st_mtime_ns) for x in os.scandir(extended)]
    assert xlnet.extend_vocabulary(general, [domain], extended, NEW)["new_pieces"] == NEW
    assert_refused(
        "with other files", xlnet.extend_vocabulary, general, [domain], extended, NEW - 1
    )
    assert before == [(x.stat().st_ino, x.stat().st_mtime_ns) for x in os.scandir(extended)]


def extension_of(model, domain):
    tokenizer = xlnet.load_tokenizer(model)
    sample = read_sample([domain], SampleOptions(sample_bytes=1 << 30), False, False)
    return extend_vocabulary(tokenizer, sample, NEW)


def check_rows(extension, old, new):
    """The rows of an embedding and a bias, by hand."""
    for old_value, new_value, is_bias in zip(old, new, (False, True), strict=True):
        np.testing.assert_array_equal(new_value[: len(old_value)], old_value)
        assert len(new_value) == len(old_value) + NEW
        for number, ids in enumerate(extension.replaced):
            expected = sum(old_value[i] for i in ids) / len(ids)
            expected = expected + is_bias * extension.log_share[number]
            np.testing.assert_allclose(new_value[len(old_value) + number], expected, atol=1e-6)


def test_rows_of_new_pieces_and_all_other_weights(general, domain, extended):
    before, after = load_pretrainer(general), load_pretrainer(extended)
    assert after.config.model.vocab_size == OLD + NEW
    check_rows(
        extension_of(general, domain),
        [before.encoder.word_embedding.embeddings.numpy(), before.lm_head.bias.numpy()],
        [after.encoder.word_embedding.embeddings.numpy(), after.lm_head.bias.numpy()],
    )
    parts = [*before.encoder.variables, *before.auxiliary.variables]
    others = [*after.encoder.variables, *after.auxiliary.variables]
    assert len(parts) == len(others) > 20
    for old, new in zip(parts, others, strict=True):
        np.testing.assert_array_equal(new[:OLD] if old.shape[:1] == [OLD] else new, old, old.name)
    config = before.config
    config.model.vocab_size += NEW
    assert after.config == config


def test_graphs_tokenize_new_pieces(extended):
    tokenizer = xlnet.load_tokenizer(extended)
    texts = [*mixed_texts(30), *domain_text().splitlines()[:60]]
    expected = [ids.tolist() for ids in tokenizer.encode_batch(texts)]
    assert max(max(ids) for ids in expected if ids) >= OLD
    assert GraphTokenizer(tokenizer)(tf.constant(texts)).to_list() == expected


def test_models_that_cannot_be_extended(general, domain, tmp_path):
    shutil.copytree(general, tmp_path / "bare")
    os.unlink(tmp_path / "bare/spiece.model")
    for model, output, number, sentence in (
        (general, "out", 0, "num_pieces: expected"),
        (general, "out", 2.5, "num_pieces: expected"),
        (general, "bare", NEW, "expected a new or an empty folder"),
        (f"{tmp_path}/bare", "out", NEW, "no vocabulary at"),
    ):
        assert_refused(
            sentence, xlnet.extend_vocabulary, model, [domain], f"{tmp_path}/{output}", number
        )
    assert os.listdir(tmp_path) == ["bare"]
