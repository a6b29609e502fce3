"""Compositions of Keras, with an encoder in the place of `Embedding(mask_zero=True)`.

A row is a form of model with what follows the token vectors; its columns are masks, losses, ways to
train, and files. A column that is right with an embedding is right with an encoder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import XLNetEncoder
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.compositions.substitution import NUM_ROWS, PAIRS, SOURCES, Composition
from tests.helpers.world import eagerly

FIRST, SECOND = slice(0, 2), slice(2, 4)


def assert_same(found, expected, atol=1e-5):
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=1e-5)


def rows_in_a_padded_batch(row, model, folder):
    predictions = row.predict(model)
    for number, tokens in ((1, slice(0, 4)), (3, slice(3, 7))):
        alone = row.predict(model, rows=slice(number, number + 1), tokens=tokens)
        for x, y, is_of_tokens in zip(predictions, alone, row.are_of_tokens, strict=True):
            x = x[number : number + 1]
            np.testing.assert_allclose(x[:, tokens] if is_of_tokens else x, y, atol=1e-5)
    assert all(np.abs(x[0] - x[1]).max() > 1e-4 for x in predictions)


def assert_losses(row, logs, predictions, rows=slice(None)):
    """Losses and metrics in the results of `evaluate` or a step are NumPy's."""
    expected = row.expected(predictions, rows)
    np.testing.assert_allclose(float(logs["loss"]), sum(x.loss for x in expected), rtol=1e-4)
    for number, of_output in enumerate(expected):
        for name in ("accuracy", "weighted"):
            [found] = [float(v) for key, v in logs.items() if key.endswith(f"{name}_{number}")]
            np.testing.assert_allclose(found, getattr(of_output, name), rtol=1e-4)


def losses(row, model, folder):
    row.compile(model)
    logs = model.evaluate(
        row.inputs(),
        row.labels(),
        NUM_ROWS,
        sample_weight=row.weights(),
        verbose=0,
        return_dict=True,
    )
    assert_losses(row, logs, row.predict(model))


def step(row, model, rows):
    return model.train_on_batch(
        row.inputs(rows), row.labels(rows), row.weights(rows), return_dict=True
    )


def stepped(row, model, weights, **options):
    """Predictions after two steps, of a model with these weights."""
    model.set_weights(weights)
    row.compile(model, **options)
    for rows in (FIRST, SECOND):
        step(row, model, rows)
    return row.predict(model)


def fitted(row, model, weights, **options):
    """Predictions after an epoch of two steps, of a model with these weights."""
    model.set_weights(weights)
    row.compile(model, **options)
    history = model.fit(
        row.inputs(),
        row.labels(),
        2,
        sample_weight=row.weights(),
        shuffle=False,
        validation_data=(row.inputs(), row.labels(), row.weights()),
        verbose=0,
    ).history
    predictions = row.predict(model)
    heldout = {
        name.removeprefix("val_"): values[0] for name, values in history.items() if "val_" in name
    }
    assert_losses(row, heldout, predictions)
    return predictions


def train_on_batch(row, model):
    before = row.predict(model)
    row.compile(model)
    logs = step(row, model, FIRST)
    if row.follow != "normalization":  # By the batch, in training.
        assert_losses(row, logs, before, FIRST)
    assert max(np.abs(x - y).max() for x, y in zip(before, row.predict(model), strict=True)) > 1e-4


WAYS = {
    "fit": {},
    "jit_compile": {"jit_compile": True},
    "steps_per_execution": {"steps_per_execution": 2},
}


def ways(row):
    """{way to train: what is wrong}: all give the weights of two steps, one by one."""
    model, wrong = row.new_model(), {}
    weights = model.get_weights()
    try:
        train_on_batch(row, model)
        expected = stepped(row, model, weights)
        assert_same(stepped(row, model, weights, run_eagerly=True), expected, 1e-4)
    except Exception as error:
        return {"train_on_batch": repr(error)}
    for name, options in WAYS.items():
        try:
            assert_same(fitted(row, model, weights, **options), expected, 1e-4)
        except Exception as error:
            wrong[name] = repr(error)
    return wrong


def goes_on_alike(row, model, other):
    """Two compiled models predict the same, now and after a further step."""
    assert_same(row.predict(other), row.predict(model))
    weights = model.get_weights()
    # tf_keras names the metrics of a loaded model in another way.
    of_model, of_other = (sorted(map(float, step(row, x, SECOND).values())) for x in (model, other))
    assert of_other == pytest.approx(of_model, rel=1e-4)
    assert_same(row.predict(other), row.predict(model), 1e-4)
    model.set_weights(weights)


def whole_file(row, model, folder):
    row.compile(model)
    step(row, model, FIRST)
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    assert type(loaded) is type(model)
    if row.form != "subclassed":  # Which has new names, unless its class keeps them.
        assert loaded.name == model.name
        assert sorted(x.name for x in loaded.layers) == sorted(x.name for x in model.layers)
    goes_on_alike(row, model, loaded)
    loaded.fit(row.inputs(), row.labels(), verbose=0)


def weights_file(row, model, folder):
    row.compile(model)
    step(row, model, FIRST)
    model.save_weights(folder / "model.weights.h5")
    other = row.new_model(seed=2)
    assert np.abs(row.predict(other)[0] - row.predict(model)[0]).max() > 1e-3
    other.load_weights(folder / "model.weights.h5")
    assert_same(row.predict(other), row.predict(model))


def exported(row, model, folder):
    """Models without an `Input` are exported with one length, and often with floats."""
    model.export(folder / "export", **({"verbose": False} if IS_KERAS_3 else {}))
    loaded = tf.saved_model.load(folder / "export")
    has_no_input = row.form in ("subclassed", "without inputs")
    _, specs = loaded.signatures["serving_default"].structured_input_signature
    for tokens in (slice(None), slice(0, None if has_no_input else 5)):
        inputs = tf.nest.map_structure(tf.constant, row.inputs(tokens=tokens))
        if has_no_input:
            [spec] = specs.values()
            inputs = tf.cast(inputs, spec.dtype)
        elif isinstance(inputs, dict) and not IS_KERAS_3:
            inputs = list(inputs.values())
        found = [np.asarray(x) for x in tf.nest.flatten(loaded.serve(inputs))]
        assert_same(found, row.predict(model, tokens=tokens))


def clone_model(row, model, folder):
    clone = keras.models.clone_model(model)
    assert_is_a_copy(row, clone, model)


def from_config(row, model, folder):
    copy = type(model).from_config(model.get_config())
    if not copy.built:
        copy(row.inputs())
    assert_is_a_copy(row, copy, model)


def assert_is_a_copy(row, copy, model):
    assert np.abs(row.predict(copy)[0] - row.predict(model)[0]).max() > 1e-4
    copy.set_weights(model.get_weights())
    assert_same(row.predict(copy), row.predict(model))
    row.compile(copy)
    before = row.predict(model)
    step(row, copy, FIRST)
    assert_same(row.predict(model), before, 0)


def summary(row, model, folder):
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line), expand_nested=True)
    num_trainable = sum(int(np.prod(x.shape)) for x in model.trainable_weights)
    assert str(num_trainable) in "\n".join(lines).replace(",", "")


def plot_model(row, model, folder):
    """Where it is installed, as for an embedding."""
    keras.utils.plot_model(model, folder / "model.png")


def names(row, model, folder):
    """Layers are found by name, and cut where a user wants them."""
    for layer in model.layers:
        assert model.get_layer(layer.name) is layer
    kind = XLNetEncoder if row.source == "encoder" else keras.layers.Embedding
    sources = [x for x in model._flatten_layers() if isinstance(x, kind)]
    assert len(sources) == (2 if row.form == "two" else 1)
    source = sources[0]
    if row.form in ("functional", "sequential", "several", "two"):
        part = keras.Model(model.inputs, source.output)
        ids = row.ids(0)
        inputs = [ids, row.inputs()["numbers"]] if row.form == "several" else ids
        [vectors, *_] = tf.nest.flatten(part.predict(inputs, verbose=0))
        [expected, *_] = tf.nest.flatten(source(ids))
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    paths = [getattr(x, "path", x.name) for x in model.weights]
    assert len(set(paths)) == len(paths)


FILES = (
    rows_in_a_padded_batch,
    losses,
    whole_file,
    weights_file,
    exported,
    clone_model,
    from_config,
    summary,
    plot_model,
    names,
)


def files(row, folder, checks=FILES):
    """{check: what is wrong}."""
    model, wrong = row.new_model(), {}
    for check in checks:
        try:
            with eagerly(check is not exported):
                check(row, model, folder)
        except Exception as error:
            wrong[check.__name__] = repr(error)
    return wrong


def wrong_with_keras(form, follow):
    """Checks that an embedding may fail, and an encoder with it.

    In a class of a user, `MultiHeadAttention` of Keras 3 deletes the mask of its inputs, and later
    layers read padding. `plot_model` needs packages that may be missing.
    """
    deletes_mask = IS_KERAS_3 and form == "subclassed" and follow in ("attention", "add", "scores")
    return {"plot_model"} | ({"rows_in_a_padded_batch"} if deletes_mask else set())


@pytest.mark.parametrize("form, follow", [("several", "token head")])
def test_padding_and_losses(form, follow, tmp_path):
    row = Composition(form, follow, "encoder")
    assert files(row, tmp_path, [rows_in_a_padded_batch, losses]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("form, follow", [("subclassed", "token head"), ("siamese", "pooling")])
def test_files(form, follow, tmp_path):
    row = Composition(form, follow, "encoder")
    assert files(row, tmp_path, [losses, whole_file, exported, names]) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("form, follow", PAIRS)
def test_all_files_of_all_compositions(form, follow, tmp_path):
    wrong = {}
    for source in SOURCES:
        (tmp_path / source).mkdir()
        wrong[source] = files(Composition(form, follow, source), tmp_path / source)
    assert wrong["embedding"].keys() <= wrong_with_keras(form, follow), wrong["embedding"]
    assert wrong["encoder"].keys() <= wrong["embedding"].keys(), wrong["encoder"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "form, follow", [x for x in PAIRS if x[0] == "functional" or x[1] == "recurrent tokens"]
)
def test_all_ways_to_train(form, follow):
    for source in SOURCES:
        assert ways(Composition(form, follow, source)) == {}, source


@pytest.mark.nightly
def test_two_replicas_are_one_device():
    command = [sys.executable, "-m", "tests.helpers.compositions.two_devices"]
    output = subprocess.run(command, env=os.environ, check=True, stdout=subprocess.PIPE).stdout
    results = json.loads(output.splitlines()[-1])
    assert len(results) == 6
    for name, (one, two) in results.items():
        assert two["loss"] == pytest.approx(one["loss"], abs=1e-5), name
        assert_same(two["predictions"], one["predictions"], 1e-4)
