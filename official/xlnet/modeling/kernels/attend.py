"""Masked softmax attention over the sum of the three score terms, with its own backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import device
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, Distances
from official.xlnet.modeling.kernels.rematerialization import computed_once, used_after
from official.xlnet.modeling.kernels.stateless_dropout import dropout, keep_mask
from official.xlnet.modeling.kernels.xla_kernels import compiled, row_sums
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.modeling.ops.visibility import Keys, Rows, can_attend

_HIDDEN = -1e30  # The score of a key that a row may not attend to.


class ScoreTerms(NamedTuple):
    """The three terms of the scores of Q rows, divided by √H.

    Attributes:
      content: (q + r_w)·k, [B, N, Q, K].
      positional: (q + r_r)·r: per key [B, N, Q, K], or per distance as `shift` expects.
      segment: (q + r_s)·(s_different - s_same), [B, N, Q].
    """

    content: tf.Tensor
    positional: tf.Tensor
    segment: tf.Tensor


def attend(
    terms: ScoreTerms,
    value_BNKH: tf.Tensor,
    rows: Rows,
    keys: Keys,
    shift: Distances | None,
    causal: bool,
    rate: float,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """Softmax, dropout and weighted sum of values, [B, N, Q, H].

    A row that attends to no key gets zeros. The backward pass is written out: Σ_j p_j dp_j =
    output · d_output, and of all [B, N, Q, K] tensors only the probabilities p are kept, as dropout
    is drawn again from its seed. What it earns: with TensorFlow's own gradients, a training step of
    `small` takes 1.50 times the CPU time. A GPU keeps p in the type of the values, since XLA
    computes it again from the scores in each kernel otherwise (docs/performance.md).

    Args:
      terms: the terms of the scores.
      value_BNKH: values.
      rows: the query rows.
      keys: the keys.
      shift: how scores per distance become scores per key; None where they are per key already.
      causal: whether keys at later positions are hidden (`uni` attention).
      rate: dropout rate of the probabilities.
      seed: int32 [2], or None at inference.
    """
    kernel: Callable = functools.partial if seed is None else compiled
    rate = 0.0 if seed is None else rate
    seed = tf.zeros([2], tf.int32) if seed is None else seed
    masked_scores = kernel(_masked_scores, shift, causal)
    drop = kernel(_drop, rate, value_BNKH.dtype)
    keeps = device() == "GPU"
    score_gradients = kernel(_score_gradients, rate, keeps)
    # TensorFlow copies blocks faster than XLA loops over them; XLA gathers faster.
    copies = isinstance(shift, ConsecutiveRows)
    from_keys = (functools.partial if copies else kernel)(_from_keys, shift)

    @tf.custom_gradient
    def weigh(content_BNQK, positional, segment_BNQ, value_BNKH):
        scores_BNQK = masked_scores(content_BNQK, positional, segment_BNQ, rows, keys)
        p_BNQK = tf.nn.softmax(scores_BNQK)
        if keeps:
            p_BNQK = computed_once(tf.cast(p_BNQK, value_BNKH.dtype))
        output_BNQH = multiply(drop(p_BNQK, seed), value_BNKH)

        def gradient(d_output_BNQH):
            dots_BNQH = tf.cast(d_output_BNQH, tf.float32) * tf.cast(output_BNQH, tf.float32)
            # Drawing again must not be optimized away to keeping what was drawn first.
            d_output_BNQH, (same_seed,) = used_after(d_output_BNQH, [seed])
            d_value_BNKH = multiply(drop(p_BNQK, same_seed), d_output_BNQH, transpose_a=True)
            with tf.control_dependencies([d_value_BNKH]):  # One array of this size goes first.
                d_dropped_BNQK = multiply(d_output_BNQH, value_BNKH, transpose_b=True)
            mean_BNQ = tf.reduce_sum(dots_BNQH, axis=-1)
            d_content, d_segment = score_gradients(
                p_BNQK, d_dropped_BNQK, mean_BNQ, same_seed, rows, keys
            )
            d_positional = from_keys(d_content, rows.positions)
            return d_content, d_positional, d_segment, d_value_BNKH

        return output_BNQH, gradient

    output_BNQH = weigh(*terms, value_BNKH)
    sees_any_BQ = tf.reduce_any(can_attend(rows, keys, causal), axis=-1)
    return output_BNQH * tf.cast(sees_any_BQ, output_BNQH.dtype)[:, None, :, None]


def _masked_scores(
    shift: Distances | None, causal: bool, content_BNQK, positional, segment_BNQ, rows, keys
):
    """The sum of the three terms, float32 [B, N, Q, K], hugely negative where keys are hidden.

    Softmax ignores what a row adds to all its scores, so seg_same needs no term of its own.
    """
    score = tf.cast(content_BNQK, tf.float32)
    if shift is not None:
        positional = shift.to_keys(positional, rows.positions)
    score += tf.cast(positional, tf.float32)
    segment = tf.cast(segment_BNQ, tf.float32)[..., None]
    score += tf.where(_is_different(rows, keys), segment, 0.0)
    return tf.where(can_attend(rows, keys, causal)[:, None], score, _HIDDEN)


def _drop(rate: float, dtype: tf.DType, p_BNQK, seed):
    return tf.cast(dropout(p_BNQK, rate, seed), dtype)


def _score_gradients(rate: float, keeps: bool, p_BNQK, d_dropped_BNQK, mean_BNQ, seed, rows, keys):
    """d_score = p (d_p - Σ p d_p), per key and, for the segment term, summed over keys."""
    dtype = d_dropped_BNQK.dtype
    d_p = tf.cast(d_dropped_BNQK, tf.float32)
    if rate:
        d_p = tf.where(keep_mask(sizes(d_p), rate, seed), d_p / (1 - rate), 0.0)
    d_score = tf.cast(p_BNQK, tf.float32) * (d_p - mean_BNQ[..., None])
    if keeps:
        d_score = tf.cast(computed_once(tf.cast(d_score, dtype)), tf.float32)
    d_segment_BNQ = row_sums(tf.where(_is_different(rows, keys), d_score, 0.0))
    return tf.cast(d_score, dtype), tf.cast(d_segment_BNQ, dtype)


def _from_keys(shift: Distances | None, score_BNQK, positions_BQ):
    return score_BNQK if shift is None else shift.from_keys(score_BNQK, positions_BQ)


def _is_different(rows: Rows, keys: Keys) -> tf.Tensor:
    """Whether row and key are in different segments, bool [B, 1, Q, K]."""
    return (rows.segment_ids[:, :, None] != keys.segment_ids[:, None, :])[:, None]
