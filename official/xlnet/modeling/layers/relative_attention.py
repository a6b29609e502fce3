"""Relative attention (Transformer-XL) for the rows of both streams.

For query row i and key j (memory, then the window's tokens), with q, k, v, r the projections of
the row, the key's hidden state and the sinusoids of their distance:

    score(i, j) = [(q_i + r_w)·k_j + (q_i + r_r)·r_(i-j) + (q_i + r_s)·seg(i, j)] / √H

and the output of row i is Σ_j softmax_j(score)(i, j) · v_j over the keys that it may see. A
content row and a query row differ in two things only, where the row comes from and which keys
it may see, so both streams run through the same code (paper, section 2.3).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from official.xlnet.modeling.layers.relative_position import ConsecutiveRows, TargetRows
from official.xlnet.modeling.ops.head_projection import from_heads, to_heads
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.rematerialization import recomputed
from official.xlnet.modeling.ops.stateless_dropout import dropout, fold_in, keep_mask
from official.xlnet.modeling.ops.xla_kernels import compiled, fused, row_sums

# Orders of keys that every row, or no row, may see.
ALWAYS_VISIBLE, NEVER_VISIBLE = tf.int32.min, tf.int32.max


class Rows(NamedTuple):
    """Query rows: which keys they may see, and where they stand.

    A row sees a key when key.order <= row.order. So a content row carries the order of its
    token, and a query row carries that order minus 1: everything strictly before it.

    Attributes:
      order_BQ: int32 [B, Q].
      segment_BQ: int32 [B, Q].
      position_BQ: int32 [B, Q], position in the window.
    """

    order_BQ: tf.Tensor
    segment_BQ: tf.Tensor
    position_BQ: tf.Tensor


class Keys(NamedTuple):
    """Keys: M of memory, then T of the window.

    Attributes:
      order_BK: int32 [B, K]; ALWAYS_VISIBLE in valid memory, NEVER_VISIBLE in padding and in
        memory of another document.
      segment_BK: int32 [B, K]; memory is of segment 0.
      position_K: int32 [K], position in the window; negative in memory.
    """

    order_BK: tf.Tensor
    segment_BK: tf.Tensor
    position_K: tf.Tensor


class Pattern(NamedTuple):
    """What is static about who attends to whom.

    Attributes:
      distances: how scores per distance become scores per key.
      causal: whether keys at later positions are hidden (`uni` attention).
    """

    distances: ConsecutiveRows | TargetRows
    causal: bool


def can_attend(rows: Rows, keys: Keys, causal: bool) -> tf.Tensor:
    """The attention mask, bool [B, Q, K]: the only place where `order` becomes a mask.

    Example: content rows whose order is 0, 2, 1, no memory:
      [[1, 0, 0],
       [1, 1, 1],
       [1, 0, 1]]
    """
    visible_BQK = keys.order_BK[:, None, :] <= rows.order_BQ[:, :, None]
    if causal:
        visible_BQK &= keys.position_K <= rows.position_BQ[:, :, None]
    return visible_BQK


def attend(
    content_BNQK: tf.Tensor,
    positional: tf.Tensor,
    segment_BNQ: tf.Tensor,
    value_BNKH: tf.Tensor,
    rows: Rows,
    keys: Keys,
    pattern: Pattern,
    rate: float,
    seed: tf.Tensor | None,
) -> tf.Tensor:
    """Softmax, dropout and weighted sum of values, [B, N, Q, H].

    A row that may see no key gets zeros. The backward pass is written out, so that of all
    [B, N, Q, K] tensors only the probabilities p are kept: dropout is drawn again from its seed,
    and Σ_j p_j dp_j = output · d_output.

    Args:
      content_BNQK: (q + r_w)·k.
      positional: (q + r_r)·r per distance, as `pattern.distances.scores` gives it.
      segment_BNQ: (q + r_s)·(seg_different - seg_same).
      value_BNKH: values.
      rows: the query rows.
      keys: the keys.
      pattern: distances and causality.
      rate: dropout rate of the probabilities.
      seed: int32 [2], or None at inference.
    """
    kernel = functools.partial if seed is None else compiled
    rate = 0.0 if seed is None else rate
    seed = tf.zeros([2], tf.int32) if seed is None else seed
    masked_scores = kernel(_masked_scores, pattern)
    drop = kernel(_drop, rate, value_BNKH.dtype)
    score_gradients = kernel(_score_gradients, rate)
    # TensorFlow copies blocks faster than XLA loops over them; XLA gathers faster.
    copies = isinstance(pattern.distances, ConsecutiveRows)
    from_keys = pattern.distances.from_keys if copies else kernel(pattern.distances.from_keys)

    @tf.custom_gradient
    def weigh(content_BNQK, positional, segment_BNQ, value_BNKH):
        scores_BNQK = masked_scores(content_BNQK, positional, segment_BNQ, rows, keys)
        p_BNQK = tf.nn.softmax(scores_BNQK)
        output_BNQH = tf.matmul(drop(p_BNQK, seed), value_BNKH)

        def gradient(d_output_BNQH):
            dots_BNQH = tf.cast(d_output_BNQH, tf.float32) * tf.cast(output_BNQH, tf.float32)
            # Drawing again must not be optimized away to keeping what was drawn first.
            with tf.control_dependencies([d_output_BNQH]):
                same_seed = tf.identity(seed)
            d_value_BNKH = tf.matmul(drop(p_BNQK, same_seed), d_output_BNQH, transpose_a=True)
            with tf.control_dependencies([d_value_BNKH]):  # One array of this size goes first.
                d_dropped_BNQK = tf.matmul(d_output_BNQH, value_BNKH, transpose_b=True)
            mean_BNQ = tf.reduce_sum(dots_BNQH, axis=-1)
            d_content, d_segment = score_gradients(
                p_BNQK, d_dropped_BNQK, mean_BNQ, seed, rows, keys
            )
            d_positional = from_keys(d_content, rows.position_BQ)
            return d_content, d_positional, d_segment, d_value_BNKH

        return output_BNQH, gradient

    output_BNQH = weigh(content_BNQK, positional, segment_BNQ, value_BNKH)
    sees_any_BQ = tf.reduce_any(can_attend(rows, keys, pattern.causal), axis=-1)
    return output_BNQH * tf.cast(sees_any_BQ, output_BNQH.dtype)[:, None, :, None]


def _biased(d_head: int, query_BNXH, bias_NH):
    """(q + r) / √H, so that no score needs to be divided."""
    return (query_BNXH + bias_NH[:, None]) * tf.cast(d_head**-0.5, query_BNXH.dtype)


def _segment_term(d_head: int, query_BNXH, bias_NH, different_NH):
    """(q + r_s)·(seg_different - seg_same) / √H, [B, N, X]."""
    return tf.reduce_sum(_biased(d_head, query_BNXH, bias_NH) * different_NH[:, None], axis=-1)


def _masked_scores(pattern: Pattern, content_BNQK, positional, segment_BNQ, rows, keys):
    """The sum of the three terms, float32 [B, N, Q, K], hugely negative where keys are hidden.

    Softmax ignores what a row adds to all its scores, so seg_same needs no term of its own.
    """
    score = tf.cast(content_BNQK, tf.float32)
    score += tf.cast(pattern.distances.to_keys(positional, rows.position_BQ), tf.float32)
    segment = tf.cast(segment_BNQ, tf.float32)[..., None]
    score += tf.where(_is_different(rows, keys), segment, 0.0)
    return tf.where(can_attend(rows, keys, pattern.causal)[:, None], score, -1e30)


def _drop(rate: float, dtype: tf.DType, p_BNQK, seed):
    return tf.cast(dropout(p_BNQK, rate, seed), dtype)


def _score_gradients(rate: float, p_BNQK, d_dropped_BNQK, mean_BNQ, seed, rows, keys):
    """d_score = p (d_p - Σ p d_p), per key and, for the segment term, summed over keys."""
    dtype = d_dropped_BNQK.dtype
    d_p = tf.cast(d_dropped_BNQK, tf.float32)
    if rate:
        d_p = tf.where(keep_mask(d_p.shape.as_list(), rate, seed), d_p / (1 - rate), 0.0)
    d_score = p_BNQK * (d_p - mean_BNQ[..., None])
    d_segment_BNQ = row_sums(tf.where(_is_different(rows, keys), d_score, 0.0))
    return tf.cast(d_score, dtype), tf.cast(d_segment_BNQ, dtype)


def _is_different(rows: Rows, keys: Keys) -> tf.Tensor:
    """Whether row and key are of different segments, bool [B, 1, Q, K]."""
    return (rows.segment_BQ[:, :, None] != keys.segment_BK[:, None, :])[:, None]


@tf_keras.utils.register_keras_serializable(package="xlnet")
class RelativeBiases(tf_keras.layers.Layer):
    """The three global query biases r_w (content), r_r (position) and r_s (segment), [N, H] each.

    Every layer has its own (`untie_r`), or all layers share one.
    """

    def __init__(self, num_heads: int, d_head: int, init_std: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.d_head, self.init_std = num_heads, d_head, init_std

    def build(self, input_shape=None):
        shape = [self.num_heads, self.d_head]
        self.content = self.add_weight("content_bias", shape, initializer=normal(self.init_std))
        self.position = self.add_weight("position_bias", shape, initializer=normal(self.init_std))
        self.segment = self.add_weight("segment_bias", shape, initializer=normal(self.init_std))
        super().build(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_head": self.d_head,
            "init_std": self.init_std,
        }


@tf_keras.utils.register_keras_serializable(package="xlnet")
class RelativeAttention(tf_keras.layers.Layer):
    """Multi-head relative attention of content rows and, if there are any, query rows.

    Keys and values come from memory and content; no gradient flows into memory.

    Args:
      num_heads: N.
      d_head: H.
      dropatt: dropout rate of attention probabilities.
      untie_r: whether the layer has its own `RelativeBiases`; else they are passed to `call`.
      init_std: standard deviation of the normal initializer.
      recompute: whether the backward pass computes probabilities again instead of keeping them.
    """

    def __init__(
        self,
        num_heads: int,
        d_head: int,
        dropatt: float = 0.0,
        untie_r: bool = True,
        init_std: float = 0.02,
        recompute: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.d_head, self.dropatt = num_heads, d_head, dropatt
        self.untie_r, self.init_std, self.recompute = untie_r, init_std, recompute
        if untie_r:
            self.biases = RelativeBiases(num_heads, d_head, init_std, name="biases")

    def build(self, input_shape):
        d_model, heads = input_shape[-1], [self.num_heads, self.d_head]

        def kernel(name):
            return self.add_weight(
                f"{name}_kernel", [d_model, *heads], initializer=normal(self.init_std)
            )

        self.query_kernel, self.key_kernel = kernel("query"), kernel("key")
        self.value_kernel, self.position_kernel = kernel("value"), kernel("position")
        self.output_kernel = kernel("output")
        self.segment_embedding = self.add_weight(
            "segment_embedding", [2, *heads], initializer=normal(self.init_std)
        )
        if self.untie_r:
            self.biases.build()
        super().build(input_shape)

    def call(
        self,
        rows_BXD: tf.Tensor,
        memory_BMD: tf.Tensor | None,
        sinusoids: tuple[tf.Tensor, tf.Tensor],
        direction_B: tf.Tensor | None,
        streams: tuple[tuple[Rows, Pattern], ...],
        keys: Keys,
        biases: RelativeBiases | None = None,
        seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Attention output before the residual, [B, X, D].

        Args:
          rows_BXD: X = T content rows, then P query rows (if any).
          memory_BMD: hidden states of earlier tokens, or None.
          sinusoids: sine and cosine [R, D / 2] of the distances.
          direction_B: 1 for rows read left to right, -1 for reversed ones; None: all 1.
          streams: rows and pattern of the content stream and, if it is wanted, the query stream.
          keys: the keys.
          biases: shared biases where `untie_r` is False.
          seed: int32 [2] for dropout in training, None at inference.
        """
        biases = biases or self.biases
        sizes = [rows.order_BQ.shape[1] for rows, _ in streams]
        content_BTD = tf.split(rows_BXD, sizes, axis=1)[0]
        query_BNXH = to_heads(rows_BXD, self.query_kernel)
        different_NH = self.segment_embedding[1] - self.segment_embedding[0]
        kernel = functools.partial if seed is None else fused
        biased, segment_term = kernel(_biased, self.d_head), kernel(_segment_term, self.d_head)
        by_stream = [
            tf.split(term, sizes, axis=2)
            for term in (
                biased(query_BNXH, tf.cast(biases.content, query_BNXH.dtype)),
                biased(query_BNXH, tf.cast(biases.position, query_BNXH.dtype)),
                segment_term(query_BNXH, tf.cast(biases.segment, query_BNXH.dtype), different_NH),
            )
        ]
        key_BNKH = self._project_keys(content_BTD, memory_BMD, self.key_kernel)
        value_BNKH = self._project_keys(content_BTD, memory_BMD, self.value_kernel)
        position_BNRH = self._project_positions(sinusoids, direction_B)

        attended = []
        for number, (rows, pattern) in enumerate(streams):
            stream_seed = None if seed is None else fold_in(seed, number)
            attention: Callable = functools.partial(self._attend, rows, keys, pattern, stream_seed)
            if self.recompute and seed is not None:
                attention = recomputed(attention)
            terms = (term[number] for term in by_stream)
            attended.append(attention(*terms, key_BNKH, value_BNKH, position_BNRH))
        return from_heads(tf.concat(attended, axis=2), self.output_kernel)

    def _attend(
        self, rows, keys, pattern, seed, by_content, by_position, segment, key, value, position
    ):
        content = tf.matmul(by_content, key, transpose_b=True)
        positional = pattern.distances.scores(by_position, position)
        return attend(content, positional, segment, value, rows, keys, pattern, self.dropatt, seed)

    def _project_keys(self, content_BTD, memory_BMD, kernel_DNH):
        projected = to_heads(content_BTD, kernel_DNH)
        if memory_BMD is None:
            return projected
        memory = to_heads(tf.stop_gradient(memory_BMD), kernel_DNH)
        return tf.concat([memory, projected], axis=2)

    def _project_positions(self, sinusoids, direction_B):
        kernels = tf.split(tf.convert_to_tensor(self.position_kernel), 2, axis=0)
        sine_1NRH, cosine_1NRH = (
            to_heads(tf.cast(half, self.compute_dtype)[None], kernel)
            for half, kernel in zip(sinusoids, kernels, strict=True)
        )
        if direction_B is None:
            return sine_1NRH + cosine_1NRH
        direction = tf.cast(direction_B, self.compute_dtype)[:, None, None, None]
        return cosine_1NRH + direction * sine_1NRH

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "d_head": self.d_head,
            "dropatt": self.dropatt,
            "untie_r": self.untie_r,
            "init_std": self.init_std,
            "recompute": self.recompute,
        }
