"""Dropout as a function of its seed, and kernels with a backward pass of their own."""

import math
import re

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.stateless_dropout import dropout, fold_in, keep_mask
from official.xlnet.modeling.kernels.xla_kernels import fused
from official.xlnet.modeling.layers.feed_forward import FeedForward
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock

SEED = [7, -11]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.87])
def test_rate_and_scale(rate):
    shape = [3, 211, 307]
    x = tf.random.stateless_uniform(shape, [1, 2], 1.0, 2.0)
    y = dropout(x, rate, tf.constant(SEED)).numpy()
    kept = y != 0
    np.testing.assert_allclose(y[kept], x.numpy()[kept] / (1 - rate), rtol=1e-6)
    deviation = np.sqrt(rate * (1 - rate) / kept.size)
    assert abs(kept.mean() - (1 - rate)) < 4.5 * deviation
    for axis in range(3):
        counts = kept.mean(axis=tuple({0, 1, 2} - {axis}))
        bound = 5 * np.sqrt(rate * (1 - rate) / (kept.size / shape[axis]))
        assert np.abs(counts - (1 - rate)).max() < bound


def test_neighbours_and_seeds_are_independent():
    size = 1 << 17
    base = tf.constant(SEED)
    seeds = [base, *(fold_in(base, number) for number in range(5)), base + 1, base[::-1]]
    masks = [keep_mask([size], 0.5, seed).numpy() for seed in seeds]
    columns = [2.0 * mask - 1 for mask in masks]
    columns += [np.roll(columns[0], distance) for distance in (1, 2, 32, 128, 768)]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / np.sqrt(size)


def test_same_seed_same_mask_everywhere():
    shape = [5, 7, 13]

    def mask(seed):
        return keep_mask(shape, 0.3, fold_in(seed, 3))

    wanted = mask(tf.constant(SEED)).numpy()
    for jit_compile in (False, True):
        function = tf.function(mask, jit_compile=jit_compile)
        np.testing.assert_array_equal(function(tf.constant(SEED)), wanted)
    assert not np.array_equal(mask(tf.constant([7, 11])), wanted)


@pytest.mark.parametrize("shape", [[], [7], [3, 5], [2, 3, 5, 7]], ids=str)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_accelerators_draw_the_same_bits(shape, jit_compile):
    seed = tf.constant(SEED)
    wanted = keep_mask(shape, 0.3, seed)
    with built_for("TPU"):
        mask = tf.function(lambda seed: keep_mask(shape, 0.3, seed), jit_compile=jit_compile)(seed)
    assert mask.shape == shape
    np.testing.assert_array_equal(mask, wanted)


def test_masks_of_accelerators_are_no_constants():
    """TensorFlow computes what depends on no input before it compiles, and hands it over."""

    def largest_constant(kind):
        with built_for(kind):
            function = tf.function(
                lambda seed: keep_mask([31, 37, 41], 0.3, seed), jit_compile=True
            )
            hlo = function.experimental_get_compiler_ir(tf.constant(SEED))(stage="hlo")
        shapes = re.findall(r" = \w+\[([\d,]*)\]\S* constant\(", hlo)
        return max(math.prod(int(size) for size in s.split(",") if size) for s in shapes)

    assert largest_constant("CPU") == 31 * 37 * 41
    assert largest_constant("TPU") <= 41


def test_gradient_has_the_mask_of_the_forward_pass():
    x = tf.random.stateless_uniform([3, 5, 7], [1, 2], 1.0, 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout(x, 0.4, tf.constant(SEED))
    gradient = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(gradient, y / x, rtol=1e-6)
    assert set(np.unique(np.round(gradient, 4))) == {0.0, np.float32(1.6667)}


def _scaled_sine(factor, x, shift, count):
    return factor * tf.sin(x + shift) * tf.cast(count, tf.float32)


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_fused_kernel_has_the_gradients_of_its_function(graph):
    rng = np.random.default_rng(0)
    x, shift, upstream = (
        tf.constant(rng.standard_normal(shape), tf.float32) for shape in ([3, 5], [5], [3, 5])
    )
    count = tf.constant([2, 3, 5, 7, 11])

    def run(function):
        with tf.GradientTape() as tape:
            tape.watch([x, shift])
            y = function(x, shift, count)
        return y, *tape.gradient(y, [x, shift], upstream)

    kernel = fused(_scaled_sine, 1.5)
    got = tf.function(lambda: run(kernel))() if graph else run(kernel)
    wanted = run(lambda *tensors: _scaled_sine(1.5, *tensors))
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(("rate", "expected"), [(None, 0.4), (0.0, 0.0), (0.2, 0.2)])
def test_a_block_drops_after_its_activation_at_a_rate_of_its_own(rate, expected):
    """Without one, at that of all hidden states."""
    block = XLNetBlock(2, 11, 29, dropout=0.4, init_std=0.5, activation_dropout=rate)
    x = tf.random.stateless_normal([3, 7, 22], [1, 2])
    block.build(x.shape)
    _check_inner_dropout(block.feed_forward, x, expected)
    assert block.feed_forward_norm.dropout == block.attention_norm.dropout == 0.4


def _check_inner_dropout(layer: FeedForward, x: tf.Tensor, rate: float) -> None:
    seed = tf.constant(SEED)
    inner = tf.nn.gelu(x @ layer.inner_kernel + layer.inner_bias, approximate=True)
    wanted = dropout(inner, rate, seed) @ layer.outer_kernel + layer.outer_bias
    np.testing.assert_allclose(layer(x, training=True, dropout_seed=seed), wanted, atol=1e-5)
