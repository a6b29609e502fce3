"""Threefry-2x32 against its published vectors, and what a draw may depend on."""

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from official.xlnet.modeling.kernels import stateless_random

# threefry2x32, 20 rounds, of the file kat_vectors of the Random123 library: counter, key, output.
KNOWN_ANSWERS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def draw(num=11, seed=3, stream=0, epoch=(0, 0), window_id=(5, 6), function=None):
    function = function or stateless_random.row_bits
    return function(
        seed, stream, tf.constant(epoch, tf.int32), tf.constant(window_id, tf.int64), num
    ).numpy()


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
def test_known_answers(counter, key, expected):
    words = [tf.constant(word, tf.uint32) for word in (*key, *counter)]
    got = stateless_random.threefry_2x32(tuple(words[:2]), tuple(words[2:]))
    assert tuple(int(word) for word in got) == expected
    assert tuple(threefry(key, counter)) == expected


def test_words_of_key_and_counter():
    seed, stream, epoch, window_id = -7, 2, 3, (5 << 40) + 13
    row_key = threefry((seed % 2**32, epoch), (window_id % 2**32, window_id >> 32))
    blocks = [threefry(row_key, (stream, index)) for index in range(3)]
    expected = [block[0] for block in blocks] + [block[1] for block in blocks]
    got = draw(5, seed, stream, (epoch,), (window_id,))
    np.testing.assert_array_equal(got[0], expected[:5])


def test_same_with_and_without_xla():
    compiled = tf.function(stateless_random.row_uniform, jit_compile=True)
    windows = (2**31 + 5, 7 << 35)
    np.testing.assert_array_equal(
        draw(window_id=windows, epoch=(9, 2**31 - 1), function=compiled),
        draw(window_id=windows, epoch=(9, 2**31 - 1), function=stateless_random.row_uniform),
    )


def test_rows_do_not_depend_on_the_batch():
    both = draw(epoch=(4, 9), window_id=(17, 2**33))
    np.testing.assert_array_equal(both[1:], draw(epoch=(9,), window_id=(2**33,)))


def test_uniform():
    uniform = draw(
        1000, epoch=[0] * 200, window_id=range(200), function=stateless_random.row_uniform
    )
    assert uniform.dtype == np.float32
    assert uniform.min() >= 0 and uniform.max() < 1
    counts = np.histogram(uniform, bins=256, range=(0, 1))[0]
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    # Neighbours, in a row and between rows, are independent.
    for first, second in [(uniform[:, :-1], uniform[:, 1:]), (uniform[:-1], uniform[1:])]:
        pairs = np.histogram2d(first.ravel(), second.ravel(), bins=16)[0]
        assert scipy.stats.chi2_contingency(pairs).pvalue > 1e-3
