"""Compositions of Keras, with an encoder in the place of `Embedding(mask_zero=True)`.

A row is a form of model with what follows the token vectors; its columns are masks, losses, ways to
train, and files. A column that is right with an embedding is right with an encoder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import XLNetEncoder
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.compositions.substitution import NUM_ROWS, PAIRS, Composition
from tests.helpers.world import eagerly

FIRST, SECOND = slice(0, 2), slice(2, 4)


def assert_same(found, expected, atol=1e-5):
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=1e-5)


def change(weights, others):
    """The largest difference between two lists of weights."""
    return max(np.abs(x - y).max() for x, y in zip(weights, others, strict=True))


def rows_in_a_padded_batch(row, model, folder, predictions):
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


def losses(row, model, folder, predictions):
    logs = model.evaluate(
        row.inputs(),
        row.labels(),
        NUM_ROWS,
        sample_weight=row.weights(),
        verbose=0,
        return_dict=True,
    )
    assert_losses(row, logs, predictions)
    assert_same(predicted(row, model), predictions)


def predicted(row, model):
    """Predictions of `predict`, in two batches."""
    return tf.nest.flatten(model.predict(row.inputs(), 2, verbose=0))


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
    return predicted(row, model)


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
    predictions = predicted(row, model)
    heldout = {
        name.removeprefix("val_"): values[0] for name, values in history.items() if "val_" in name
    }
    assert_losses(row, heldout, predictions)
    return predictions


def train_on_batch(row, model):
    """Predictions after two steps; the losses of the first are NumPy's."""
    before = predicted(row, model)
    row.compile(model)
    logs = step(row, model, FIRST)
    if row.follow != "normalization":  # By the batch, in training.
        assert_losses(row, logs, before, FIRST)
    step(row, model, SECOND)
    after = predicted(row, model)
    assert change(before, after) > 1e-4
    return after


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
        expected = train_on_batch(row, model)
        assert_same(stepped(row, model, weights, run_eagerly=True), expected, 1e-4)
    except Exception as error:
        return {"train_on_batch": repr(error)}
    for name, options in WAYS.items():
        try:
            assert_same(fitted(row, model, weights, **options), expected, 1e-4)
        except Exception as error:
            wrong[name] = repr(error)
    return wrong


def whole_file(row, model, folder, predictions):
    """What is loaded predicts the same, and goes on alike with a step of `fit`."""
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    assert type(loaded) is type(model)
    if row.form != "subclassed":  # Which has new names, unless its class keeps them.
        assert loaded.name == model.name
        assert sorted(x.name for x in loaded.layers) == sorted(x.name for x in model.layers)
    assert_same(row.predict(loaded), predictions)
    weights = model.get_weights()
    model.reset_metrics()
    of_step = step(row, model, SECOND)
    of_fit = loaded.fit(
        row.inputs(SECOND), row.labels(SECOND), sample_weight=row.weights(SECOND), verbose=0
    ).history
    # tf_keras names the metrics of a loaded model in another way.
    expected = sorted(float(value) for value in of_step.values())
    assert sorted(value for [value] in of_fit.values()) == pytest.approx(expected, rel=1e-4)
    assert_same(loaded.get_weights(), model.get_weights())
    model.set_weights(weights)


def weights_file(row, model, folder, predictions):
    model.save_weights(folder / "model.weights.h5")
    other = row.new_model(seed=2)
    assert change(other.get_weights(), model.get_weights()) > 1e-3
    other.load_weights(folder / "model.weights.h5")
    assert_same(row.predict(other), predictions)


def exported(row, model, folder, predictions):
    """Models without an `Input` are exported with one length, and often with floats."""
    expected = [(slice(None), predictions)]
    has_no_input = row.form in ("subclassed", "without inputs")
    if not has_no_input:
        shorter = slice(0, 5)
        expected.append((shorter, row.predict(model, tokens=shorter)))
    with eagerly(False):
        model.export(folder / "export", **({"verbose": False} if IS_KERAS_3 else {}))
        loaded = tf.saved_model.load(folder / "export")
        _, specs = loaded.signatures["serving_default"].structured_input_signature
        for tokens, values in expected:
            inputs = tf.nest.map_structure(tf.constant, row.inputs(tokens=tokens))
            if has_no_input:
                [spec] = specs.values()
                inputs = tf.cast(inputs, spec.dtype)
            elif isinstance(inputs, dict) and not IS_KERAS_3:
                inputs = list(inputs.values())
            assert_same(tf.nest.flatten(loaded.serve(inputs)), values)


def onnx(row, model, folder, predictions):
    import onnxruntime  # Not installed everywhere.

    path = folder / "model.onnx"
    with eagerly(False):
        model.export(path, format="onnx", verbose=False)
    session, types = onnxruntime.InferenceSession(path), {"tensor(float)": np.float32}
    inputs = {
        argument.name: value.astype(types.get(argument.type, value.dtype))
        for argument, value in zip(session.get_inputs(), tf.nest.flatten(row.inputs()), strict=True)
    }
    assert_same(session.run(None, inputs), predictions)


def clone_model(row, model, folder, predictions):
    assert_is_a_copy(row, keras.models.clone_model(model), model, predictions)


def from_config(row, model, folder, predictions):
    assert_is_a_copy(row, type(model).from_config(model.get_config()), model, predictions)


def assert_is_a_copy(row, copy, model, predictions):
    """A copy is the same model with weights of its own, which a step changes."""
    if not copy.built:
        copy(row.inputs())
    weights = model.get_weights()
    assert change(copy.get_weights(), weights) > 1e-3
    copy.set_weights(weights)
    assert_same(row.predict(copy), predictions)
    row.compile(copy)
    step(row, copy, SECOND)
    assert change(copy.get_weights(), weights) > 0
    assert change(model.get_weights(), weights) == 0


def summary(row, model, folder, predictions):
    lines = []
    model.summary(print_fn=lambda line, **_: lines.append(line), expand_nested=True)
    num_trainable = sum(int(np.prod(x.shape)) for x in model.trainable_weights)
    assert str(num_trainable) in "\n".join(lines).replace(",", "")


def plot_model(row, model, folder, predictions):
    """Where it is installed, as for an embedding."""
    path = folder / "model.png"
    # tf_keras cannot say the shapes of a layer that takes a dictionary of one tensor.
    show_shapes = IS_KERAS_3 or row.form != "without inputs"
    keras.utils.plot_model(
        model, path, show_shapes=show_shapes, show_dtype=True, expand_nested=True
    )
    assert path.stat().st_size > 0


def names(row, model, folder, predictions):
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


# A pair of each form, and of each that follows. Keras 3 alone exports ONNX.
FURTHER_FILES = (onnx,) if IS_KERAS_3 else ()
SOME_PAIRS = [x for x in PAIRS if x[0] == "functional" or x[1] == "recurrent tokens"]


@eagerly()
def files(row, folder, checks=FILES):
    """{check: what is wrong}, of a model that was trained for a step."""
    model, wrong = row.new_model(), {}
    row.compile(model)
    step(row, model, FIRST)
    predictions = row.predict(model)
    for check in checks:
        try:
            check(row, model, folder, predictions)
        except Exception as error:
            wrong[check.__name__] = repr(error)
    return wrong


def wrong_with_keras(form, follow):
    """Checks that an embedding may fail, and an encoder with it.

    In a class of a user, `MultiHeadAttention` of Keras 3 deletes the mask of its inputs, and later
    layers read padding. Some checks need packages that may be missing.
    """
    wrong = set()
    if IS_KERAS_3 and form == "subclassed" and follow in ("attention", "add", "scores"):
        wrong.add("rows_in_a_padded_batch")
    if importlib.util.find_spec("pydot") is None or shutil.which("dot") is None:
        wrong.add("plot_model")
    if importlib.util.find_spec("tf2onnx") is None:
        wrong.add("onnx")
    return wrong


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
    """Where an encoder fails, an embedding is tried, too."""
    checks = FILES + (FURTHER_FILES if (form, follow) in SOME_PAIRS else ())
    wrong = files(Composition(form, follow, "encoder"), tmp_path, checks)
    checks = [check for check in checks if check.__name__ in wrong]
    if checks:
        of_embedding = files(Composition(form, follow, "embedding"), tmp_path, checks)
        assert wrong.keys() <= of_embedding.keys(), wrong
        assert of_embedding.keys() <= wrong_with_keras(form, follow), of_embedding


@pytest.mark.nightly
@pytest.mark.parametrize("form, follow", SOME_PAIRS)
def test_all_ways_to_train(form, follow):
    assert ways(Composition(form, follow, "encoder")) == {}


@pytest.mark.nightly
def test_two_replicas_are_one_device():
    command = [sys.executable, "-m", "tests.helpers.compositions.two_devices"]
    output = subprocess.run(command, env=os.environ, check=True, stdout=subprocess.PIPE).stdout
    results = json.loads(output.splitlines()[-1])
    assert len(results) == 7
    for name, (one, two) in results.items():
        assert two["loss"] == pytest.approx(one["loss"], abs=1e-5), name
        assert_same(two["predictions"], one["predictions"], 1e-4)
