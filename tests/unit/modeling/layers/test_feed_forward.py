"""The feed-forward part against its formula, where its inner rows are longer than d_inner."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS, FeedForward

INNER = 1024
ROWS = np.random.default_rng(0).standard_normal((2, 7, 5)).astype(np.float32)


def formula(rows, inner_kernel, inner_bias, outer_kernel, outer_bias):
    inner = ACTIVATIONS["gelu"](tf.tensordot(rows, inner_kernel, 1) + inner_bias)
    return tf.tensordot(inner, outer_kernel, 1) + outer_bias


@pytest.mark.parametrize("seed", [None, [3, 5]], ids=["inference", "training"])
def test_output_and_gradients(seed):
    assert inner_width(INNER) > INNER
    layer = FeedForward(INNER, init_std=0.5)
    layer.build([None, None, ROWS.shape[-1]])
    layer.inner_bias.assign(np.linspace(-1, 1, INNER))
    rows, results = tf.constant(ROWS), []
    ours = functools.partial(layer, training=seed is not None, dropout_seed=seed)
    for function in (ours, lambda rows: formula(rows, *layer.trainable_variables)):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            output = function(rows)
        operands = [rows, *layer.trainable_variables]
        results.append([output, *tape.gradient(output, operands, tf.cos(output))])
    for got, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
