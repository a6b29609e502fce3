"""Factors of sinusoids against the sinusoids of distances, and scores from both."""

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids
from official.xlnet.modeling.layers.relative_position import (
    RelativePositionEncoding,
    Sinusoids,
    sinusoids,
)

BATCH, TOKENS, MEMORY, TARGETS, HEADS, WIDTH = 3, 11, 5, 2, 2, 14
KEYS = MEMORY + TOKENS
HIDDEN, REMEMBERED = np.zeros([BATCH, TOKENS, WIDTH]), np.zeros([BATCH, MEMORY, WIDTH])


def encoding(clamp_len=0, **kwargs):
    with built_for("TPU"):
        return RelativePositionEncoding(clamp_len, **kwargs)(HIDDEN, memory=REMEMBERED)


def by_distance():
    """Sine and cosine of the distance of every row and key, [T, K, D / 2]."""
    table = sinusoids(TOKENS, MEMORY, WIDTH)
    number_TK = TOKENS - 1 - np.arange(TOKENS)[:, None] + np.arange(KEYS)
    return table.sine[number_TK], table.cosine[number_TK]


def products(factors):
    """Σ_f factor[i, f, c] · keys[j, f, c] of both halves."""
    return [np.einsum("ifc,jfc->ijc", half, factors.keys) for half in factors.rows]


def test_products_are_the_sinusoids_of_distances():
    factors = encoding()
    assert isinstance(factors, FactoredSinusoids)
    for got, wanted in zip(products(factors), by_distance(), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-6)


def test_clamped_distances_and_other_devices_have_no_factors():
    assert isinstance(encoding(clamp_len=4), Sinusoids)
    for kind in ("CPU", "GPU"):
        with built_for(kind):
            assert isinstance(RelativePositionEncoding()(HIDDEN), Sinusoids)


def test_dropout_is_drawn_for_each_row_and_half():
    rate = 0.4
    dropped = encoding().with_dropout(rate, tf.constant([3, 5]), tf.constant([7, 11]))
    masks = []
    for got, wanted in zip(products(dropped), by_distance(), strict=True):
        # One mask for all keys: an element of a row is 0, or divided by the probability to stay.
        is_kept = np.abs(got).max(axis=1, keepdims=True) > 1e-6
        np.testing.assert_allclose(got, np.where(is_kept, wanted / (1 - rate), 0), atol=1e-5)
        assert 0.4 < is_kept.mean() < 0.8
        masks.append(is_kept)
    assert (masks[0] != masks[1]).any()
    assert (masks[0] != masks[0][:1]).any()


def test_rounded_to_bfloat16_they_are_no_worse_than_sinusoids_of_distances():
    """Mean error of scores, except what all keys of a row share, which softmax ignores."""
    rng = np.random.default_rng(1)
    query = rng.standard_normal([1, HEADS, TOKENS, WIDTH // HEADS])
    kernel = rng.standard_normal([WIDTH, HEADS, WIDTH // HEADS])
    sine_TKC, cosine_TKC = by_distance()
    sinusoid_TKD = np.concatenate([sine_TKC, cosine_TKC], axis=-1)
    exact = np.einsum("bnth,dnh,tkd->bntk", query, kernel, sinusoid_TKD)

    def rounded(x):
        return tf.cast(tf.cast(x, tf.bfloat16), tf.float64).numpy()

    query, kernel = rounded(query), rounded(kernel)
    position = rounded(np.einsum("dnh,tkd->ntkh", kernel, rounded(sinusoid_TKD)))
    of_distances = np.einsum("bnth,ntkh->bntk", query, position)

    @tf.function(jit_compile=True)  # Products sum in float32, as on a TPU; TensorFlow's may not.
    def scores(query, kernel):
        return encoding(dtype="mixed_bfloat16").of_rows(None, None).scores(query, kernel)

    of_factors = scores(tf.cast(query, tf.bfloat16), tf.cast(kernel, tf.bfloat16))

    def error(scores):
        difference = tf.cast(scores, tf.float64).numpy() - exact
        return np.square(difference - difference.mean(-1, keepdims=True)).mean() ** 0.5

    assert 0 < error(of_factors) < error(rounded(of_distances))
