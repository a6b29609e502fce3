"""`save_pretrained`: `load_encoder`, `load_pretrainer` and the commands read what it writes."""

import os

import numpy as np
import pytest

from official import xlnet
from official.xlnet.checkpoints.model_directory import load_pretrainer, restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError
from official.xlnet.inference.language_model import load_language_model
from official.xlnet.inference.scoring import score
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from tests.helpers.compiled import make_model
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import random_windows, randomize, tiny_encoder

VOCAB_SIZE = 211


@pytest.fixture(scope="module")
def vocabulary():
    return os.path.join(vocabulary_dir(VOCAB_SIZE), "spiece.model")


def assert_same_weights(model, other):
    assert len(model.variables) == len(other.variables) > 0
    for ours, theirs in zip(model.variables, other.variables, strict=True):
        np.testing.assert_array_equal(theirs, ours, err_msg=ours.name)


def test_a_pretrainer_after_training(tmp_path, vocabulary):
    model = make_model(vocab_size=VOCAB_SIZE, num_layers=1)
    model.train_step(random_windows(0))
    folder = str(tmp_path / "model")
    xlnet.save_pretrained(model, folder, vocabulary)
    loaded = xlnet.load_pretrainer(folder)
    assert loaded.config.as_dict() == model.config.as_dict()
    assert_same_weights(model.encoder, loaded.encoder)
    np.testing.assert_array_equal(loaded.lm_head.bias, model.lm_head.bias)
    assert_same_weights(model.encoder, xlnet.load_encoder(folder))

    tokenizer = xlnet.load_tokenizer(folder)
    (line,) = score(load_language_model(folder), tokenizer, ["The time of the people."])
    assert np.isfinite(line.log_likelihoods).all()


def test_saving_again_replaces_the_weights(tmp_path, vocabulary):
    for seed in (1, 2):
        encoder = tiny_encoder(seed, vocab_size=VOCAB_SIZE)
        xlnet.save_pretrained(encoder, str(tmp_path), xlnet.Tokenizer(vocabulary))
    assert_same_weights(encoder, xlnet.load_encoder(str(tmp_path)))
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".index")]) == 1


def test_a_model_of_a_task(tmp_path, vocabulary):
    config = task_config(name="classification", labels=("a", "b"))
    config.model.vocab_size = VOCAB_SIZE
    model = XLNetTaskModel(config)
    randomize(model.variables, 1)
    xlnet.save_pretrained(model, str(tmp_path), vocabulary)
    loaded = XLNetTaskModel(XLNetConfig.load(str(tmp_path)))
    restore(str(tmp_path), encoder=loaded.encoder, head=loaded.head)
    assert_same_weights(model.encoder, loaded.encoder)
    assert_same_weights(model.head, loaded.head)


def test_next_sentence_is_kept(tmp_path, vocabulary):
    changes = {"objective.next_sentence": True, "vocab_size": VOCAB_SIZE, "num_layers": 1}
    model, other = make_model(**changes), make_model(is_random=False, **changes)
    xlnet.save_pretrained(model, str(tmp_path), vocabulary)
    restore(str(tmp_path), next_sentence=other.next_sentence)  # Its place since version 0.1.
    assert_same_weights(model.auxiliary, other.auxiliary)
    assert_same_weights(model.auxiliary, load_pretrainer(str(tmp_path)).auxiliary)


def test_a_tokenizer_that_does_not_fit(tmp_path, vocabulary):
    folder = str(tmp_path / "model")
    with pytest.raises(ConfigError, match=r"model\.vocab_size: expected at least 211.* got 53"):
        xlnet.save_pretrained(tiny_encoder(), folder, vocabulary)
    encoder = tiny_encoder(vocab_size=VOCAB_SIZE)
    with pytest.raises(ConfigError, match=r"lowercase False, as data\.lowercase.* got True"):
        xlnet.save_pretrained(encoder, folder, xlnet.Tokenizer(vocabulary, lowercase=True))
    assert not os.path.exists(folder)


def test_the_directory_of_a_run_is_left_alone(tmp_path, vocabulary):
    (tmp_path / "ckpt-7.json").write_text("{}")
    with pytest.raises(ConfigError, match="got that of a run"):
        xlnet.save_pretrained(tiny_encoder(vocab_size=VOCAB_SIZE), str(tmp_path), vocabulary)
    assert os.listdir(tmp_path) == ["ckpt-7.json"]
