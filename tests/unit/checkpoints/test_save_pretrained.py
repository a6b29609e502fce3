"""`save_pretrained`: `load_encoder`, `load_pretrainer` and the commands read what it writes."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf
import yaml

from official import xlnet
from official.xlnet.checkpoints import saving
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.compare import assert_refused, assert_same_variables
from tests.helpers.compiled import make_model
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.file_systems.models import (
    VOCAB_SIZE,
    assert_a_model_is_replaced_whole_or_stays,
)
from tests.helpers.tiny import random_windows, randomize, tiny_encoder


@pytest.fixture(scope="module")
def vocabulary():
    return os.path.join(vocabulary_dir(VOCAB_SIZE), "spiece.model")


def test_a_pretrainer_after_training(tmp_path, vocabulary):
    model = make_model(vocab_size=VOCAB_SIZE, num_layers=1)
    model.train_step(random_windows(0))
    folder = str(tmp_path / "model")
    xlnet.save_pretrained(model, folder, vocabulary)
    loaded = xlnet.load_pretrainer(folder)
    assert loaded.config.as_dict() == model.config.as_dict()
    assert_same_variables(loaded.trainable_variables, model.trainable_variables)
    assert_same_variables(xlnet.load_encoder(folder).variables, model.encoder.variables)


def test_a_model_is_replaced_whole_or_stays(tmp_path, vocabulary, monkeypatch):
    assert_a_model_is_replaced_whole_or_stays(str(tmp_path / "model"), vocabulary, monkeypatch)


def test_what_a_kill_has_left_is_removed_by_the_next_call(tmp_path, vocabulary, monkeypatch):
    model, folder = tiny_encoder(1, vocab_size=VOCAB_SIZE), tmp_path / "model"
    temporary, create = [], saving.create_model_dir

    def create_and_note(new, *rest):
        temporary.append(pathlib.Path(new))
        create(new, *rest)

    monkeypatch.setattr(saving, "create_model_dir", create_and_note)
    xlnet.save_pretrained(model, folder, vocabulary)
    names = sorted(os.listdir(folder))
    assert temporary[0].parent == folder and temporary[0].name not in names
    temporary[0].mkdir()  # As a killed process leaves it: no process holds its lock.
    (temporary[0] / "config.yaml").touch()
    xlnet.save_pretrained(model, folder, vocabulary)
    assert sorted(os.listdir(folder)) == names


PAIRS = [
    ("A fine film.", "the time"),
    ("Dull, but not long.", ""),
    ("", "water"),
    ("no", "x " * 13),
]
# Of a classifier: number of logits, arguments of `save_pretrained`, probabilities of the logits.
KINDS = {
    "classes": (3, {"labels": ["bad", "fair", "good"]}, tf.nn.softmax),
    "pairs": (2, {"text_columns": ["premise", "hypothesis"]}, tf.nn.softmax),
    "sigmoid": (
        1,
        {"labels": ["no", "yes"]},
        lambda z: tf.concat([1 - tf.sigmoid(z), tf.sigmoid(z)], 1),
    ),
    "multi_label": (2, {"task": "multi_label", "labels": ["a", "b"]}, tf.sigmoid),
    "regression": (1, {}, tf.identity),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_trained_in_keras(tmp_path, vocabulary, kind):
    """Keras, the model directory, its export and HF's format predict the same."""
    num_logits, given, probabilities = KINDS[kind]
    tokenizer = xlnet.Tokenizer(vocabulary)
    encoder = tiny_encoder(vocab_size=VOCAB_SIZE, num_layers=1, summary="mean")
    model = xlnet.XLNetClassifier(encoder, num_logits)
    randomize(model.variables, 5)
    model.compile("adam", "mse", run_eagerly=True)
    firsts, seconds = map(list, zip(*PAIRS, strict=True))
    columns = (firsts, seconds) if kind == "pairs" else (firsts,)
    inputs = tokenizer(*columns)
    model.fit(inputs, np.random.default_rng(0).random((4, num_logits)), verbose=0)
    wanted = probabilities(model.predict(inputs, verbose=0)).numpy()

    folder = tmp_path / "model"
    xlnet.save_pretrained(model, folder, vocabulary, **given)
    xlnet.convert(folder, tmp_path / "hf", to="hf")
    examples = PAIRS if kind == "pairs" else firsts
    for path in (folder, tmp_path / "hf"):
        rows = xlnet.predict(path, examples)
        found = [
            list(row["probabilities"].values()) if num_logits > 1 or given else [row["score"]]
            for row in rows
        ]
        np.testing.assert_allclose(found, wanted, atol=2e-6)
    names = given.get("labels", ["0", "1"])
    if kind != "regression":
        assert list(rows[0]["probabilities"]) == names


@pytest.mark.parametrize(
    ("num_logits", "given", "message"),
    [
        (3, {"labels": ["a", "b"]}, "labels: expected 3 different names for 3 logits, got"),
        (2, {"labels": ["a", "a"]}, "labels: expected 2 different names"),
        (2, {"labels": "ab"}, "labels: expected a list of strings, got str 'ab'"),
        (1, {"labels": ["a"]}, "labels: expected 2 different names for 1 logits"),
        (2, {"task": "regression"}, "task: expected classification with 2 logits"),
        (1, {"task": "regression", "labels": ["a"]}, "labels: expected none for regression"),
        (2, {"task": "ranking"}, "task: expected one of classification, multi_label, regression"),
        (None, {"labels": ["a"]}, "labels: expected an XLNetClassifier, got XLNetEncoder"),
    ],
)
def test_labels_that_do_not_fit(tmp_path, vocabulary, num_logits, given, message):
    model = tiny_encoder(vocab_size=VOCAB_SIZE, num_layers=1)
    if num_logits:
        model = xlnet.XLNetClassifier(model, num_logits)
    assert_refused(message, xlnet.save_pretrained, model, tmp_path / "model", vocabulary, **given)
    assert not (tmp_path / "model").exists()


def test_weights_that_are_no_finite_numbers_are_refused(tmp_path, vocabulary):
    encoder = tiny_encoder(1, vocab_size=VOCAB_SIZE)
    encoder.mask_embedding.assign(encoder.mask_embedding * np.nan)
    xlnet.save_pretrained(encoder, str(tmp_path / "model"), vocabulary)
    for read in (xlnet.load_encoder, lambda path: xlnet.convert(path, str(tmp_path / "hf"), "hf")):
        assert_refused(r"mask_embedding.*: expected finite numbers", read, str(tmp_path / "model"))


@pytest.mark.parametrize(
    ("key", "value"), [("num_layers", 1), ("activation", "relu"), ("clamp_len", 3)]
)
def test_weights_and_the_configuration_are_of_one_model(tmp_path, vocabulary, key, value):
    """The record names what was changed; without it, as in old directories, no layer is left."""
    folder = tmp_path / "model"
    xlnet.save_pretrained(tiny_encoder(1, vocab_size=VOCAB_SIZE, num_layers=2), folder, vocabulary)
    config = XLNetConfig.load(str(folder)).as_dict()
    config["model"][key] = value
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    assert_refused(
        rf"config.yaml: model.{key}: expected .*weights", xlnet.load_encoder, str(folder)
    )
    if key == "num_layers":
        (folder / "weights.json").unlink()
        assert_refused(
            r"expected .*config.yaml describes, got one more", xlnet.load_encoder, str(folder)
        )
