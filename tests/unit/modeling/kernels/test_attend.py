"""Softmax, dropout and gradients of `attend` against plain TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.attend import (
    Pattern,
    ScoreTerms,
    attend,
    attention_probabilities,
)
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, TargetRows
from official.xlnet.modeling.kernels.stateless_dropout import keep_mask
from official.xlnet.modeling.ops.visibility import (
    ALWAYS_VISIBLE,
    NEVER_VISIBLE,
    Keys,
    MaskedRows,
    OrderedRows,
    can_attend,
)

BATCH, HEADS, TOKENS, MEMORY, WIDTH, TARGETS = 3, 2, 7, 5, 11, 3


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
    rows = OrderedRows(row_order, rng.integers(0, 3, [BATCH, size]), position)
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
    )
    value = normal(BATCH, HEADS, num_keys, WIDTH)
    return ScoreTerms(*terms), value, rows, keys, distances, normal(BATCH, HEADS, size, WIDTH)


def plain_attend(terms, value, rows, keys, pattern, rate, seed):
    """The equations of `attend`, left to TensorFlow's own gradients."""
    visible = can_attend(rows, keys, pattern.causal)[:, None]
    different = (rows.segment_ids[:, :, None] != keys.segment_ids[:, None])[:, None]
    score = terms.content + pattern.distances.to_keys(terms.positional, rows.positions)
    score += tf.cast(different, tf.float32) * terms.segment[..., None]
    exponent = tf.exp(score) * tf.cast(visible, tf.float32)
    p = tf.math.divide_no_nan(exponent, tf.reduce_sum(exponent, axis=-1, keepdims=True))
    if seed is not None:
        p *= tf.cast(keep_mask(p.shape.as_list(), rate, seed), tf.float32) / (1 - rate)
    return tf.einsum("bnqk,bnkh->bnqh", p, value)


@pytest.mark.parametrize("seed", [None, [3, 5]], ids=["inference", "dropout"])
@pytest.mark.parametrize("consecutive", [True, False], ids=["content", "query"])
@pytest.mark.parametrize("kind", ["eager", "graph", "masked rows", "unknown sizes"])
def test_attend_and_its_gradients(kind, consecutive, seed):
    terms, value, rows, keys, distances, upstream = arguments(consecutive)
    pattern = Pattern(distances, causal=consecutive)
    rate, seed = 0.3, None if seed is None else tf.constant(seed)

    def run(terms, value, function=attend, rows=rows, pattern=pattern):
        with tf.GradientTape() as tape:
            tape.watch([*terms, value])
            output = function(terms, value, rows, keys, pattern, rate, seed)
        return output, *tape.gradient(output, [*terms, value], upstream)

    function = run if kind == "eager" else tf.function(run)
    if kind == "masked rows":
        masked = MaskedRows(can_attend(rows, keys, False), rows.segment_ids, rows.positions)
        function = tf.function(lambda terms, value: run(terms, value, rows=masked))
    if kind == "unknown sizes":
        unknown = [tf.TensorSpec([None, *(None for _ in x.shape[1:])]) for x in [*terms, value]]

        @tf.function(input_signature=[ScoreTerms(*unknown[:-1]), unknown[-1]])
        def function(terms, value):
            num_keys = tf.shape(value)[2]
            dynamic = type(distances)(num_keys - MEMORY, num_keys)
            terms = [tf.ensure_shape(x, [None, HEADS, *x.shape[2:]]) for x in terms]
            value = tf.ensure_shape(value, [None, HEADS, None, WIDTH])
            return run(ScoreTerms(*terms), value, pattern=Pattern(dynamic, consecutive))

    got = function(terms, value)
    for ours, wanted in zip(got, run(terms, value, plain_attend), strict=True):
        np.testing.assert_allclose(ours, wanted, atol=5e-6)
    assert np.all(got[0][0, :, 0] == 0), "a row that sees nothing gets zeros"
    assert np.all(got[1][0, :, 0] == 0), "and gives no gradient"
    assert np.all(np.isfinite(got[0]))


def test_probabilities_are_those_that_weigh_the_values():
    terms, value, rows, keys, distances, _ = arguments(consecutive=True)
    pattern = Pattern(distances, causal=True)
    p = attention_probabilities(terms, rows, keys, pattern)
    output = attend(terms, value, rows, keys, pattern, rate=0.0, seed=None)
    np.testing.assert_allclose(tf.einsum("bnqk,bnkh->bnqh", p, value), output, atol=5e-6)
    sees_any = tf.reduce_any(can_attend(rows, keys, True), axis=-1)
    total = np.broadcast_to(np.asarray(sees_any)[:, None], p.shape[:3]).astype(np.float32)
    np.testing.assert_allclose(tf.reduce_sum(p, axis=-1), total, atol=1e-6)
    assert not total.all() and total.any()
