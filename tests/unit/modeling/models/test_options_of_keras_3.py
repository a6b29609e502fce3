"""What only Keras 3 has: scales of optimizers, XLA by itself, executions that do not end within."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.tiny import VOCAB, random_windows, randomize, tiny_config, tiny_encoder

SGD, LossScaleOptimizer = keras.optimizers.SGD, keras.mixed_precision.LossScaleOptimizer
BATCH = random_windows(0, context_length=0)


@pytest.fixture(scope="module")
def pretrainer():
    """Shared, as it is compiled anew by each test."""
    return XLNetPretrainer(tiny_config(num_layers=1))


@pytest.fixture(scope="module")
def causal():
    """A model whose step is traced in half the time of the permutation's; shared likewise."""
    return XLNetPretrainer(tiny_config(num_layers=1, kind="causal"))


def losses_of(model, optimizer):
    randomize(model.trainable_variables, seed=3, scale=0.1)
    model.compile(optimizer, run_eagerly=True)
    return [model.train_on_batch(BATCH)[0] for _ in range(2)]


def test_a_factor_of_the_loss_changes_nothing(pretrainer):
    plain = losses_of(pretrainer, SGD(0.1))
    assert plain[1] < plain[0] - 0.01
    scaled = losses_of(pretrainer, SGD(0.1, loss_scale_factor=1024))
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


def test_accumulated_batches_have_different_dropout(pretrainer):
    pretrainer.compile(SGD(0.1, gradient_accumulation_steps=2), run_eagerly=True)
    seeds = set()
    for _ in range(3):
        seeds.add(tuple(pretrainer.step_seed(0).numpy()))
        pretrainer.train_on_batch(BATCH)
    assert len(seeds) == 3


def test_xla_is_used_where_it_is_asked_for_alone(pretrainer, monkeypatch):
    gpu = tf.config.PhysicalDevice("a", "GPU")
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: [gpu])
    assert not XLNetPretrainer(tiny_config(num_layers=1)).jit_compile  # Not compiled.
    for asked in ("auto", None, False, True):
        pretrainer.compile("sgd", jit_compile=asked)
        assert pretrainer.jit_compile is (asked is True)


def test_a_file_keeps_the_scale_of_the_loss(pretrainer, tmp_path):
    pretrainer.compile(LossScaleOptimizer(SGD(0.1)), run_eagerly=True)
    pretrainer.train_on_batch(BATCH)
    pretrainer.optimizer.dynamic_scale.assign(64)
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").optimizer
    for found, kept in zip(loaded.variables, pretrainer.optimizer.variables, strict=True):
        np.testing.assert_array_equal(found.numpy(), kept.numpy())
    assert float(loaded.dynamic_scale.numpy()) == 64


@pytest.mark.slow
def test_epochs_and_evaluations_end_within_an_execution(causal):
    """And predictions, after as many batches as with one step in each."""
    windows = [random_windows(seed, context_length=0) for seed in range(5)]
    stacked = {name: np.stack([batch[name] for batch in windows]) for name in windows[0]}

    endless = tf.data.Dataset.from_tensor_slices(stacked).repeat()
    heldout = {"validation_data": endless, "validation_steps": 2}

    def found(size):
        randomize(causal.trainable_variables, seed=3, scale=0.1)
        causal.compile("sgd", steps_per_execution=size, run_eagerly=size == 1)
        losses = [causal.evaluate(endless, steps=4, verbose=0)]
        predicted = causal.predict(endless, steps=4, verbose=0)
        losses += [array.shape for array in tf.nest.flatten(predicted)]
        for epochs in (1, 2):
            steps = {"steps_per_epoch": 4, "epochs": epochs, **heldout}
            losses += itertools.chain(*causal.fit(endless, verbose=0, **steps).history.values())
            losses.append(causal.evaluate(endless, steps=4, verbose=0))
        assert int(tf.convert_to_tensor(causal.optimizer.iterations)) == 12
        return tf.nest.flatten(losses)

    np.testing.assert_allclose(found(3), found(1), rtol=1e-4)


@pytest.mark.slow
def test_a_run_evaluates_distributed_data_between_executions(causal):
    """Which cannot be cut: training goes on with executions of its own."""
    windows = [random_windows(seed, context_length=0) for seed in range(5)]
    stacked = {name: np.stack([batch[name] for batch in windows]) for name in windows[0]}
    data = tf.distribute.get_strategy().distribute_datasets_from_function(
        lambda context: tf.data.Dataset.from_tensor_slices(stacked).repeat()
    )

    def found(size, steps):
        randomize(causal.trainable_variables, seed=3, scale=0.1)
        causal.compile("sgd", steps_per_execution=size, run_eagerly=size == 1)
        losses, sizes = [], []

        def evaluate(batch, logs):
            if batch % 4 == 3:
                losses.append(causal.evaluate(data, steps=3, verbose=0))
                sizes.append(causal.steps_per_execution)

        hook = keras.callbacks.LambdaCallback(on_train_batch_end=evaluate)
        causal.fit(data, steps_per_epoch=steps, callbacks=[hook], verbose=0)
        assert {*sizes} == {size} and len(losses) == steps // 4
        assert int(tf.convert_to_tensor(causal.optimizer.iterations)) == steps
        return tf.nest.flatten(losses)

    np.testing.assert_allclose(found(4, 8), found(1, 8), rtol=1e-4)


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
@pytest.mark.parametrize("is_inside", [False, True])
def test_quantize_names_the_export_and_changes_nothing(mode, is_inside, recwarn):
    encoder = tiny_encoder(mem_len=0)
    ids = tf.random.uniform([2, 7], 9, VOCAB, tf.int32, seed=3)
    model = XLNetClassifier(encoder, 3)
    if is_inside:
        inputs = keras.Input([7], dtype="int32")
        model = keras.Model(inputs, keras.layers.Dense(5)(encoder(inputs)["content"]))
    before = model(ids)
    with pytest.raises(ConfigError, match=r"xlnet export.*--weights=int8"):
        model.quantize(mode)
    np.testing.assert_array_equal(model(ids), before)
    messages = [str(warning.message) for warning in recwarn]
    assert not any("XLNet" in message or "Relative" in message for message in messages)
