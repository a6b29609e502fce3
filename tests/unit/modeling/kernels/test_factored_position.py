"""Factors of sinusoids against the sinusoids of distances, and scores from both."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import built_for
from official.xlnet.modeling.kernels.factored_position import FactoredRows, FactoredSinusoids
from official.xlnet.modeling.layers.relative_attention import TwoStreamRelativeAttention
from official.xlnet.modeling.layers.relative_position import (
    RelativePositionEncoding,
    Sinusoids,
    sinusoids,
)
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask

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


def test_sizes_that_are_not_static_change_nothing():
    layer = RelativePositionEncoding()

    @tf.function(input_signature=[tf.TensorSpec([None, None, WIDTH])] * 2)
    def dynamic(hidden_states, memory):
        return layer(hidden_states, memory=memory)

    with built_for("TPU"):
        for got, wanted in zip(dynamic(HIDDEN, REMEMBERED), encoding(), strict=True):
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


def attention_of(kind, inputs, mask, dtype="float32"):
    """Output and gradients of two-stream attention built for a kind of device."""
    with built_for(kind):
        encode = RelativePositionEncoding(dtype=dtype)
        layer = TwoStreamRelativeAttention(HEADS, WIDTH // HEADS, init_std=0.5, dtype=dtype)
        layer.build([BATCH, TOKENS + TARGETS, WIDTH])
        for number, variable in enumerate(layer.trainable_variables):
            variable.assign(0.4 * tf.random.stateless_normal(variable.shape, [1, number]))

        def run(hidden_states, memory, is_reversed):
            with tf.GradientTape() as tape:
                tape.watch(hidden_states)
                table = encode(hidden_states[:, :-TARGETS], memory=memory)
                assert isinstance(table, FactoredSinusoids) == (kind == "TPU")
                output = layer(hidden_states, mask, table, memory=memory, is_reversed=is_reversed)
            sources = [hidden_states, *layer.trainable_variables]
            upstream = tf.random.stateless_normal(tf.shape(output), [2, 3])
            return [output, *tape.gradient(output, sources, upstream)]

        # Sizes of rows and memory may be known or not.
        unknown = [tf.TensorSpec([None, None, WIDTH])] * 2 + [tf.TensorSpec([None], tf.bool)]
        return [tf.function(run)(*inputs), tf.function(run, input_signature=unknown)(*inputs)]


@pytest.mark.parametrize("with_reversed", [True, False])
def test_attention_and_its_gradients_equal_those_of_shifted_scores(with_reversed):
    rng = np.random.default_rng(0)
    hidden = tf.constant(rng.standard_normal([BATCH, TOKENS + TARGETS, WIDTH]), tf.float32)
    memory = tf.constant(rng.standard_normal([BATCH, MEMORY, WIDTH]), tf.float32)
    is_reversed = tf.constant([False, with_reversed, with_reversed])
    targets = np.stack([rng.permutation(TOKENS)[:TARGETS] for _ in range(BATCH)]).astype(np.int32)
    order = np.zeros([BATCH, TOKENS], np.int32)
    np.put_along_axis(order, targets, np.arange(1, TARGETS + 1), axis=1)
    mask = TwoStreamAttentionMask()(
        hidden[:, :TOKENS],
        memory=memory,
        order=tf.constant(order),
        target_positions=tf.constant(targets),
        segment_ids=tf.constant(rng.integers(0, 2, [BATCH, TOKENS])),
    )
    (wanted, _), found = (
        attention_of(kind, (hidden, memory, is_reversed), mask) for kind in ("CPU", "TPU")
    )
    for results in found:
        for got, value in zip(results, wanted, strict=True):
            assert np.abs(value).max() > 0.01
            np.testing.assert_allclose(got, value, atol=2e-5, rtol=1e-4)


def test_rounded_to_bfloat16_they_are_no_worse_than_sinusoids_of_distances():
    """Mean error of scores, but for what is common to all keys of a row, which softmax ignores."""
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


def test_rows_of_factors_have_nothing_to_shift():
    score = tf.random.stateless_normal([BATCH, HEADS, TARGETS, KEYS], [1, 2])
    rows = FactoredRows(TOKENS, KEYS)
    position = tf.zeros([BATCH, TARGETS], tf.int32)
    assert rows.to_keys(score, position) is score
    assert rows.from_keys(score, position) is score
