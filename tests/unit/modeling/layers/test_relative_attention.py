"""Masks written out; softmax, dropout and gradients of `attend` against plain TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.layers.relative_attention import (
    ALWAYS_VISIBLE,
    NEVER_VISIBLE,
    Keys,
    Pattern,
    Rows,
    attend,
    can_attend,
)
from official.xlnet.modeling.layers.relative_position import ConsecutiveRows, TargetRows
from official.xlnet.modeling.ops.stateless_dropout import keep_mask

BATCH, HEADS, TOKENS, MEMORY, WIDTH, TARGETS = 3, 2, 7, 5, 11, 3


def mask_of(row_order, key_order, causal=False, row_position=None, num_memory=0):
    row_position = range(len(row_order)) if row_position is None else row_position
    rows = Rows(*(tf.constant([list(x)]) for x in (row_order, row_order, row_position)))
    key_position = tf.range(-num_memory, len(key_order) - num_memory)
    keys = Keys(tf.constant([key_order]), tf.constant([key_order]), key_position)
    return can_attend(rows, keys, causal)[0].numpy().astype(int).tolist()


def test_content_mask():
    assert mask_of([0, 2, 0, 1], [0, 2, 0, 1]) == [
        [1, 0, 1, 0],
        [1, 1, 1, 1],
        [1, 0, 1, 0],
        [1, 0, 1, 1],
    ]


def test_query_mask_is_closed_at_the_target_itself():
    # Targets 1 and 3: their order minus 1.
    assert mask_of([1, 0], [0, 2, 0, 1], row_position=[1, 3]) == [
        [1, 0, 1, 1],
        [1, 0, 1, 0],
    ]


def test_memory_and_padding():
    # Memory of another document, memory of this one, padding, then tokens of order 0 and 1.
    keys = [NEVER_VISIBLE, ALWAYS_VISIBLE, NEVER_VISIBLE, 0, 1]
    assert mask_of([0, 0, 1], keys, num_memory=2) == [
        [0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0],
        [0, 1, 0, 1, 1],
    ]


def test_uni_hides_later_positions():
    assert mask_of([0, 0, 0], [ALWAYS_VISIBLE, 0, 0, 0], causal=True, num_memory=1) == [
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 1, 1],
    ]


def arguments(consecutive, seed=0):
    """Random terms of `attend`. The first row of the first batch row sees nothing."""
    rng = np.random.default_rng(seed)
    num_keys = MEMORY + TOKENS
    order = np.array([rng.permutation(TOKENS) for _ in range(BATCH)])
    order[0] += 1
    position = np.broadcast_to(np.arange(TOKENS), [BATCH, TOKENS])
    distances = ConsecutiveRows(TOKENS, num_keys)
    if not consecutive:
        position = np.array([rng.choice(TOKENS, TARGETS, replace=False) for _ in range(BATCH)])
        distances = TargetRows(TOKENS, num_keys)
    size = position.shape[1]
    row_order = np.take_along_axis(order, position, axis=1)
    row_order[0, 0] = 0
    memory_order = np.full([BATCH, MEMORY], ALWAYS_VISIBLE)
    memory_order[0] = NEVER_VISIBLE
    rows = Rows(row_order, rng.integers(0, 3, [BATCH, size]), position)
    key_order = np.concatenate([memory_order, order], axis=1)
    keys = Keys(key_order, rng.integers(0, 3, [BATCH, num_keys]), np.arange(-MEMORY, TOKENS))
    rows, keys = (type(x)(*(tf.constant(y, tf.int32) for y in x)) for x in (rows, keys))

    def normal(*shape):
        return tf.constant(rng.standard_normal(shape), tf.float32)

    table = normal(BATCH, HEADS, MEMORY + 2 * TOKENS - 1, WIDTH)
    positional = distances.scores(normal(BATCH, HEADS, size, WIDTH), table)
    terms = (
        normal(BATCH, HEADS, size, num_keys),
        positional,
        normal(BATCH, HEADS, size),
        normal(BATCH, HEADS, num_keys, WIDTH),
    )
    return terms, rows, keys, distances, normal(BATCH, HEADS, size, WIDTH)


def plain_attend(content, positional, segment, value, rows, keys, pattern, rate, seed):
    """The equations of `attend`, left to TensorFlow's own gradients."""
    visible = can_attend(rows, keys, pattern.causal)[:, None]
    different = (rows.segment_BQ[:, :, None] != keys.segment_BK[:, None])[:, None]
    score = content + pattern.distances.to_keys(positional, rows.position_BQ)
    score += tf.cast(different, tf.float32) * segment[..., None]
    exponent = tf.exp(score) * tf.cast(visible, tf.float32)
    p = tf.math.divide_no_nan(exponent, tf.reduce_sum(exponent, axis=-1, keepdims=True))
    if seed is not None:
        p *= tf.cast(keep_mask(p.shape.as_list(), rate, seed), tf.float32) / (1 - rate)
    return tf.einsum("bnqk,bnkh->bnqh", p, value)


@pytest.mark.parametrize("seed", [None, [3, 5]], ids=["inference", "dropout"])
@pytest.mark.parametrize("consecutive", [True, False], ids=["content", "query"])
@pytest.mark.parametrize("graph", [False, True], ids=["eager", "graph"])
def test_attend_and_its_gradients(graph, consecutive, seed):
    terms, rows, keys, distances, upstream = arguments(consecutive)
    pattern = Pattern(distances, causal=consecutive)
    rate, seed = 0.3, None if seed is None else tf.constant(seed)

    def run(function):
        with tf.GradientTape() as tape:
            tape.watch(terms)
            output = function(*terms, rows, keys, pattern, rate, seed)
        return output, *tape.gradient(output, terms, upstream)

    got = (tf.function(run) if graph else run)(attend)
    for ours, wanted in zip(got, run(plain_attend), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=5e-6)
    assert np.all(got[0][0, :, 0] == 0), "a row that sees nothing gets zeros"
    assert np.all(got[1][0, :, 0] == 0), "and gives no gradient"
    assert np.all(np.isfinite(got[0]))
