"""The models as Keras users train them: optimizers, precision, own permutations, wrong batches."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from official.nlp import optimization

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.compiled import make_model
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import (
    random_inputs,
    random_windows,
    randomize,
    tiny_config,
)

LossScaleOptimizer = tf_keras.mixed_precision.LossScaleOptimizer
LEGACY = ["SGD", "RMSprop", "Adam", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl"]
OPTIMIZERS = {
    "adam": lambda: "adam",
    **{
        name: getattr(tf_keras.optimizers, name) for name in [*LEGACY, "AdamW", "Lion", "Adafactor"]
    },
    **{f"legacy.{name}": getattr(tf_keras.optimizers.legacy, name) for name in LEGACY},
    "official.nlp adamw": lambda: optimization.create_optimizer(1e-2, 10, 0),
    "official.nlp lamb": lambda: optimization.create_optimizer(1e-2, 10, 0, optimizer_type="lamb"),
    "own": lambda: create_optimizer(tiny_config().training, 1),
}
# One of each kind of interface.
KINDS = ("adam", "legacy.Adam", "official.nlp adamw", "own")


@pytest.fixture(scope="module")
def pretrainer():
    """Shared, as it is compiled anew by each test."""
    return XLNetPretrainer(tiny_config(num_layers=1))


def losses_of(model, optimizer, steps=3, **arguments):
    """Losses of steps on one batch, from the same weights each time."""
    randomize(model.trainable_variables, seed=3, scale=0.1)
    model.compile(optimizer, **arguments)
    data = tf.data.Dataset.from_tensors(random_windows(0, context_length=0))
    return model.fit(data, epochs=steps, verbose=0).history["loss"]


def weights(model):
    return [variable.numpy() for variable in model.trainable_variables]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_lowers_the_loss(pretrainer, name):
    losses = losses_of(pretrainer, OPTIMIZERS[name](), run_eagerly=True)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_a_legacy_optimizer_in_a_compiled_step_equals_the_eager_one(pretrainer):
    make = OPTIMIZERS["official.nlp adamw"]
    eager = losses_of(pretrainer, make(), run_eagerly=True)
    np.testing.assert_allclose(losses_of(pretrainer, make()), eager, atol=1e-4)


@pytest.mark.parametrize("module", [tf_keras.optimizers, tf_keras.optimizers.legacy])
def test_loss_scaling_changes_nothing_but_the_range(pretrainer, module):
    """The loss is multiplied, the gradients are divided: the same update, and the same norm."""
    runs = []
    for wrap in (lambda x: x, LossScaleOptimizer):
        optimizer = wrap(module.SGD(0.1, clipnorm=0.01))
        losses = losses_of(pretrainer, optimizer, run_eagerly=True)
        runs.append((losses, weights(pretrainer), pretrainer.gradient_norm_metric.result()))
    (losses, values, norm), (scaled_losses, scaled_values, scaled_norm) = runs
    np.testing.assert_allclose(scaled_losses, losses, atol=1e-5)
    np.testing.assert_allclose(scaled_norm, norm, rtol=1e-4)
    for one, other in zip(values, scaled_values, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-5)


def test_a_loss_scale_that_overflows_skips_the_step_and_is_halved(pretrainer):
    """So the loss was really scaled."""
    optimizer = LossScaleOptimizer(tf_keras.optimizers.SGD(), initial_scale=2.0**127)
    randomize(pretrainer.trainable_variables, seed=3, scale=0.6)
    before = weights(pretrainer)
    pretrainer.compile(optimizer, run_eagerly=True)
    pretrainer.train_step(random_windows(0, context_length=0))
    for one, other in zip(before, weights(pretrainer), strict=True):
        np.testing.assert_array_equal(one, other)
    assert float(optimizer.loss_scale) == 2.0**126


@pytest.mark.parametrize("name", KINDS)
def test_a_task_model_takes_every_kind_of_optimizer(name):
    rng = np.random.default_rng(0)
    shape = (4, 1, 11)
    batch = {
        "token_ids": rng.integers(9, 211, shape).astype(np.int32),
        "segment_ids": np.zeros(shape, np.int32),
        "is_padding": np.zeros(shape, bool),
        "label": np.array([0, 1, 2, 0], np.int32),
        "weight": np.ones(4, np.float32),
    }
    config = task_config(name="classification", labels=("a", "b", "c"), batch_size=4, num_buckets=1)
    model = XLNetTaskModel(config)
    optimizer = OPTIMIZERS[name]()
    for wrap in (lambda x: x, LossScaleOptimizer):
        if isinstance(optimizer, str):
            optimizer = tf_keras.optimizers.get(optimizer)
        model.compile(wrap(optimizer), run_eagerly=True)
        data = tf.data.Dataset.from_tensors(batch)
        losses = model.fit(data, epochs=3, verbose=0).history["loss"]
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("kind", [XLNetPretrainer, XLNetTaskModel])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": ["accuracy"]}, r"computes its own .*\(loss.*got metrics=\['accuracy'\]"),
        ({"loss": "mse", "weighted_metrics": ["a"]}, r"got loss='mse', weighted_metrics=\['a'\]"),
        ({"optimizer": 0.001}, "expected an optimizer of tf_keras or its name, got a builtins.flo"),
    ],
)
def test_compile_says_what_it_takes(kind, arguments, message):
    config = tiny_config(num_layers=1)
    if kind is XLNetTaskModel:
        config = task_config(name="classification", labels=("a", "b"))
    with pytest.raises(ConfigError, match=message):
        kind(config).compile(**arguments)


def test_precision_is_that_of_the_configuration():
    """Whatever the global policy is, which stays as it was."""
    model = make_model(num_layers=1, precision="mixed_bfloat16")
    assert tf_keras.mixed_precision.global_policy().name == "float32"
    assert {variable.dtype for variable in model.trainable_variables} == {tf.float32}
    assert model.memory.states.dtype == tf.bfloat16
    outputs = model(random_inputs(0))
    assert outputs["content"].dtype == tf.bfloat16
    assert outputs["logits"].dtype == tf.float32
    plain = make_model(num_layers=1)
    assert plain(random_inputs(0))["content"].dtype == tf.float32
    batch = random_windows(0)
    loss, wanted = (float(each.train_step(batch)["loss"]) for each in (model, plain))
    assert loss == pytest.approx(wanted, abs=0.03) and loss != wanted
    again = XLNetPretrainer.from_config(plain.get_config() | {"dtype": "mixed_bfloat16"})
    assert again.encoder.compute_dtype == "bfloat16"


def test_precision_of_a_task_model():
    config = task_config(name="classification", labels=("a", "b"))
    config.training.precision = "mixed_bfloat16"
    model = XLNetTaskModel(config)
    assert model.encoder.compute_dtype == model.head.compute_dtype == "bfloat16"
    assert tf_keras.mixed_precision.global_policy().name == "float32"


def test_what_is_scored_is_computed_in_float32():
    training = tiny_config(precision="mixed_bfloat16").training
    assert training.in_one_piece(batch_size=1).precision == "float32"


def windows_without(*names):
    return {name: value for name, value in random_windows(0).items() if name not in names}


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (windows_without("can_be_target"), "expected the feature 'can_be_target'.*got context_len"),
        (windows_without("context_length"), "expected the feature 'context_length'"),
        (windows_without("token_ids"), "expected the feature 'token_ids'"),
        ({**windows_without(), "perm_mask": 0}, "expected the feature 'target_positions'"),
        ((windows_without(), 0), "expected a dictionary of features.*got a tuple"),
    ],
)
def test_a_batch_that_lacks_a_feature(pretrainer, batch, message):
    pretrainer.compile("sgd", run_eagerly=True)
    with pytest.raises(DataError, match=message):
        pretrainer.train_step(batch)


def test_fit_says_which_feature_is_missing(pretrainer):
    """In a graph too, where TensorFlow rewrites errors."""
    pretrainer.compile("sgd")
    data = tf.data.Dataset.from_tensors(windows_without("can_be_target"))
    with pytest.raises(DataError, match="expected the feature 'can_be_target'"):
        pretrainer.fit(data, verbose=0)
