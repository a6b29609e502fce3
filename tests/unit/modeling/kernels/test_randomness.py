"""Random bits and dropout as functions of their seed, and kernels with a backward pass."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels import stateless_random
from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.stateless_dropout import dropout, fold_in, keep_mask
from official.xlnet.modeling.layers.xlnet_block import XLNetBlock

SEED = [7, -11]
# threefry2x32, 20 rounds, of the file kat_vectors of the Random123 library: counter, key, output.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def threefry(key, counter):
    """The definition on Python integers."""
    x, k = list(counter), [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    x = [(x[i] + k[i]) % 2**32 for i in range(2)]
    for r in range(20):
        rotation = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        x[0] = (x[0] + x[1]) % 2**32
        x[1] = ((x[1] << rotation | x[1] >> (32 - rotation)) % 2**32) ^ x[0]
        if r % 4 == 3:
            s = r // 4 + 1
            x = [(x[0] + k[s % 3]) % 2**32, (x[1] + k[(s + 1) % 3] + s) % 2**32]
    return x


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_threefry_has_its_published_answers(counter, key, expected):
    words = [tf.constant(word, tf.uint32) for word in (*key, *counter)]
    got = stateless_random.threefry_2x32(tuple(words[:2]), tuple(words[2:]))
    assert tuple(int(word) for word in got) == tuple(threefry(key, counter)) == expected


def draw(num, epoch, window_id, seed=3, stream=0, function=stateless_random.row_bits):
    epoch, window_id = tf.constant(epoch, tf.int32), tf.constant(window_id, tf.int64)
    return function(seed, stream, epoch, window_id, num).numpy()


def test_words_of_key_and_counter():
    """Of seed, epoch, window and stream, alone and in a batch, with and without XLA."""
    seed, stream, epoch, window_id = -7, 2, 3, (5 << 40) + 13
    row_key = threefry((seed % 2**32, epoch), (window_id % 2**32, window_id >> 32))
    blocks = [threefry(row_key, (stream, index)) for index in range(3)]
    expected = [block[0] for block in blocks] + [block[1] for block in blocks]
    compiled = tf.function(stateless_random.row_bits, jit_compile=True)
    for function in (stateless_random.row_bits, compiled):
        got = draw(5, (9, epoch), (2**31 + 5, window_id), seed, stream, function)
        np.testing.assert_array_equal(got[1], expected[:5])


def test_uniform_numbers_are_the_high_bits():
    bits, found = (
        draw(11, [0, 5, 3], [2, 2, 7], function=function)
        for function in (stateless_random.row_bits, stateless_random.row_uniform)
    )
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (bits >> 8) / 2**24)


@pytest.mark.parametrize("rate", [0.1, 0.87])
def test_rate_and_scale(rate):
    """Of the output and of the gradient, whose mask is the same, along every axis."""
    shape = [3, 211, 307]
    x = tf.random.stateless_uniform(shape, [1, 2], 1.0, 2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dropout(x, rate, tf.constant(SEED))
    kept = y.numpy() != 0
    np.testing.assert_allclose(y, np.where(kept, x / (1 - rate), 0), rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x), np.where(kept, 1 / (1 - rate), 0), rtol=1e-6)
    deviation = np.sqrt(rate * (1 - rate) / kept.size)
    assert abs(kept.mean() - (1 - rate)) < 4.5 * deviation
    for axis in range(3):
        counts = kept.mean(axis=tuple({0, 1, 2} - {axis}))
        assert np.abs(counts - (1 - rate)).max() < 5 * deviation * np.sqrt(shape[axis])


def test_neighbours_and_seeds_are_independent():
    size = 1 << 17
    base = tf.constant(SEED)
    seeds = [base, *(fold_in(base, number) for number in range(5)), base + 1, base[::-1]]
    masks = [keep_mask([size], 0.5, seed).numpy() for seed in seeds]
    columns = [2.0 * mask - 1 for mask in masks]
    columns += [np.roll(columns[0], distance) for distance in (1, 2, 32, 128, 768)]
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 5 / np.sqrt(size)


@pytest.mark.parametrize("shape", [[], [7], [3, 5], [2, 3, 5, 7]], ids=str)
def test_same_seed_same_mask_everywhere(shape):
    wanted = keep_mask(shape, 0.3, fold_in(tf.constant(SEED), 3))
    for kind, jit_compile in (("CPU", False), ("CPU", True), ("TPU", False), ("TPU", True)):
        with built_for(kind):
            function = tf.function(
                lambda seed: keep_mask(shape, 0.3, fold_in(seed, 3)), jit_compile=jit_compile
            )
            mask = function(tf.constant(SEED))
        np.testing.assert_array_equal(mask, wanted)


@pytest.mark.parametrize(("rate", "expected"), [(None, 0.4), (0.0, 0.0), (0.2, 0.2)])
def test_a_block_drops_after_its_activation_at_a_rate_of_its_own(rate, expected):
    """Without one, at that of all hidden states."""
    block = XLNetBlock(2, 11, 29, dropout=0.4, init_std=0.5, activation_dropout=rate)
    x, seed = tf.random.stateless_normal([3, 7, 22], [1, 2]), tf.constant(SEED)
    block.build(x.shape)
    layer = block.feed_forward
    inner = tf.nn.gelu(x @ layer.inner_kernel + layer.inner_bias, approximate=True)
    wanted = dropout(inner, expected, seed) @ layer.outer_kernel + layer.outer_bias
    np.testing.assert_allclose(layer(x, training=True, dropout_seed=seed), wanted, atol=1e-5)
    assert block.feed_forward_norm.dropout == block.attention_norm.dropout == 0.4
