"""What only Keras 3 has: how its optimizers scale and accumulate, XLA by itself."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.tiny import random_windows, randomize, tiny_config

SGD, LossScaleOptimizer = keras.optimizers.SGD, keras.mixed_precision.LossScaleOptimizer
BATCH = random_windows(0, context_length=0)


@pytest.fixture(scope="module")
def pretrainer():
    """Shared, as it is compiled anew by each test."""
    return XLNetPretrainer(tiny_config(num_layers=1))


def losses_of(model, optimizer):
    randomize(model.trainable_variables, seed=3, scale=0.1)
    model.compile(optimizer)
    return [model.train_on_batch(BATCH)[0] for _ in range(2)]


def test_a_factor_of_the_loss_changes_nothing(pretrainer):
    plain = losses_of(pretrainer, SGD(0.1))
    assert plain[1] < plain[0] - 0.01
    scaled = losses_of(pretrainer, SGD(0.1, loss_scale_factor=1024))
    np.testing.assert_allclose(scaled, plain, rtol=1e-5)


def test_accumulated_batches_have_different_dropout(pretrainer):
    pretrainer.compile(SGD(0.1, gradient_accumulation_steps=2))
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
    pretrainer.compile(LossScaleOptimizer(SGD(0.1)))
    pretrainer.train_on_batch(BATCH)
    pretrainer.optimizer.dynamic_scale.assign(64)
    pretrainer.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras").optimizer
    for found, kept in zip(loaded.variables, pretrainer.optimizer.variables, strict=True):
        np.testing.assert_array_equal(found.numpy(), kept.numpy())
    assert float(loaded.dynamic_scale.numpy()) == 64
