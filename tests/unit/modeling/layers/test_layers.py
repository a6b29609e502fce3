"""Layers against their formulas, and a block alone in a functional Keras model."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS, FeedForward
from official.xlnet.modeling.layers.losses import cross_entropy
from official.xlnet.modeling.layers.relative_position import RelativePositionEncoding
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.compare import assert_all_close
from tests.helpers.tiny import randomize

HEADS, HEAD, WIDTH, TARGETS = 2, 5, 14, 3
INNER = 1024


@pytest.mark.parametrize("seed", [None, [3, 5]], ids=["inference", "training"])
def test_feed_forward(seed):
    """Outputs and gradients, where rows are stored longer than d_inner, as on CPUs."""
    keras.utils.set_random_seed(1)
    assert inner_width(INNER) > INNER
    with built_for("TPU"):
        assert inner_width(INNER) == INNER
    layer = FeedForward(INNER, init_std=0.5)
    layer.build([None, None, 5])
    layer.inner_bias.assign(np.linspace(-1, 1, INNER))
    rows = tf.constant(np.random.default_rng(0).standard_normal((2, 7, 5)), tf.float32)
    variables, results = layer.trainable_variables, []

    def formula(rows):
        inner_kernel, inner_bias, outer_kernel, outer_bias = variables
        inner = ACTIVATIONS["gelu"](tf.tensordot(rows, inner_kernel, 1) + inner_bias)
        return tf.tensordot(inner, outer_kernel, 1) + outer_bias

    for function in (
        functools.partial(layer, training=seed is not None, dropout_seed=seed),
        formula,
    ):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            output = function(rows)
        results.append([output, *tape.gradient(output, [rows, *variables], tf.cos(output))])
    assert_all_close(*results, rtol=1e-4, atol=1e-4)


def values(batch, tokens, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "hidden_states": rng.standard_normal([batch, tokens + TARGETS, WIDTH]).astype(np.float32),
        "order": np.stack([rng.permutation(tokens) for _ in range(batch)]).astype(np.int32),
        "segment_ids": rng.integers(0, 3, [batch, tokens]).astype(np.int32),
        "memory": rng.standard_normal([batch, 4, WIDTH]).astype(np.float32),
        "target_positions": rng.integers(0, tokens, [batch, TARGETS]).astype(np.int32),
    }


def run_block(block, inputs, **arguments):
    mask = TwoStreamAttentionMask()(
        inputs["order"],
        order=inputs["order"],
        segment_ids=inputs["segment_ids"],
        memory=inputs["memory"],
        target_positions=inputs["target_positions"],
    )
    content = inputs["hidden_states"][:, :-TARGETS]
    encoding = RelativePositionEncoding()(content, memory=inputs["memory"])
    return block(inputs["hidden_states"], mask, encoding, memory=inputs["memory"], **arguments)


def ranks_of_encoding(model):
    (layer,) = (x for x in model.layers if isinstance(x, RelativePositionEncoding))
    return [len(x.shape) for x in layer.output]


def test_block_in_a_functional_model_is_saved_and_loaded_for_any_device(tmp_path):
    """With sizes that are unknown until it runs; relative positions have another form on a TPU."""
    inputs = {
        name: keras.Input([None, WIDTH], name=name)
        if x.dtype == np.float32
        else keras.Input([TARGETS if name == "target_positions" else None], dtype=x.dtype)
        for name, x in values(2, 7).items()
    }
    block = XLNetBlock(HEADS, HEAD, 19, attention_type="uni", dropout=0.1, recompute_attention=True)
    model = keras.Model(inputs, run_block(block, inputs))
    assert model.output_shape == (None, None, WIDTH)
    randomize(block.variables)
    path = str(tmp_path / "model.keras")
    model.save(path)
    with built_for("TPU"):
        on_a_tpu = keras.models.load_model(path)
        on_a_tpu.save(path)
    assert ranks_of_encoding(model) == [2, 2] and ranks_of_encoding(on_a_tpu) == [4, 3]
    back = keras.models.load_model(path)
    for batch, tokens in [(2, 7), (3, 11), (2, 1)]:
        given = values(batch, tokens)
        wanted = run_block(block, tf.nest.map_structure(tf.constant, given))
        with built_for("TPU"):
            found_on_a_tpu = on_a_tpu(given)
        for found in (model(given), back(given), found_on_a_tpu):
            np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_dropout_is_a_function_of_its_seed():
    layer = XLNetBlock(HEADS, HEAD, 19, dropout=0.3, dropatt=0.3)
    given = tf.nest.map_structure(tf.constant, values(2, 7))
    runs = [
        run_block(layer, given, training=True, dropout_seed=seed)
        for seed in ([1, 2], [1, 2], [1, 3], None, None)
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    for one, other in ((1, 2), (2, 3), (3, 4)):
        assert np.abs(runs[one] - runs[other]).max() > 1e-3
    plain = [run_block(layer, given, training=training) for training in (False, None)]
    np.testing.assert_array_equal(*plain)


def test_cross_entropy_is_that_of_tensorflow_and_a_wrong_label_has_none():
    rng = np.random.default_rng(3)
    logits = tf.constant(10 * rng.normal(size=[2, 3, 7]) + 90, tf.float32)
    labels, weights = tf.constant([[0, 6, 2], [5, 5, 1]]), tf.constant([[1.0, 0.5, 0], [3, 1, 2]])

    def run(function, labels=labels):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            losses = function(logits, labels)
        return losses, tape.gradient(losses, logits, weights)

    wanted = run(lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x))
    compiled = tf.function(functools.partial(run, cross_entropy), autograph=False)
    for got in run(cross_entropy), compiled():
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)
    losses, _ = compiled(labels=tf.constant([[0, 7, 2], [5, -1, 1]]))
    assert np.isnan(losses).tolist() == [[False, True, False], [False, True, False]]
