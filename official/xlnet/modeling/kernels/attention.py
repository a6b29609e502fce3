"""Relative attention in the fast forms of a device, with the signature of the reference.

Scores per distance are shifted by copies (`relative_shift`), or on a TPU computed per key
(`factored_position`); softmax, dropout and their gradients are written out (`attend`). What they
earn: with the reference in their place, a training step of `small` takes 1.45 times the CPU time
(`python -m benchmarks.training.forms`). Decoding has a form of its own (`key_value_cache`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.attend import ScoreTerms, attend
from official.xlnet.modeling.kernels.device_forms import device
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids, FactorsOfRows
from official.xlnet.modeling.kernels.matrix_products import from_heads, to_heads
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows, Distances, TargetRows
from official.xlnet.modeling.kernels.rematerialization import computed_once, recomputed
from official.xlnet.modeling.kernels.stateless_dropout import fold_in
from official.xlnet.modeling.kernels.xla_kernels import fused
from official.xlnet.modeling.ops.attention_weights import AttentionWeights
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.modeling.ops.visibility import Keys, Rows, TwoStreamMask


class ProjectedDistances(NamedTuple):
    """Distances that were projected before, for inference.

    Attributes:
      table: [1, N, 2C - 1, H], projections of the distances C - 1 … -(C - 1).
    """

    table: tf.Tensor

    def between(self, num_tokens: int, num_keys: int) -> tf.Tensor:
        """Projections of the distances K - 1 … -(T - 1), [1, N, R, H]."""
        first = (self.table.shape[2] + 1) // 2 - num_keys
        return self.table[:, :, first : first + num_keys + num_tokens - 1]


class _Stream(NamedTuple):
    """The rows of a stream, and how their positional scores are computed.

    Attributes:
      number: 0 for the content stream, 1 for the query stream.
      rows: the rows.
      positional: computes scores from (q + r_r) / √H and projected distances, or the projection.
      shift: how these become scores per key; None where they are.
    """

    number: int
    rows: Rows
    positional: Distances | FactorsOfRows
    shift: Distances | None


def with_fast_forms(reference: Callable[..., tuple[tf.Tensor, tf.Tensor]]) -> Callable:
    """`layers.attention.attention` in fast forms wherever there are any.

    Args:
      reference: the reference, which computes everything else.

    Returns:
      A function with the arguments of the reference, where `sinusoids` may be `FactoredSinusoids`
      or `ProjectedDistances`, and two more:

        recompute: whether the backward pass computes probabilities again instead of keeping them.
        return_probabilities: whether the probabilities of the content stream are wanted.

      It returns the output, and the probabilities or None.
    """

    def attention(
        hidden_states: tf.Tensor,
        mask: TwoStreamMask,
        sinusoids: tuple[Any, Any] | FactoredSinusoids | ProjectedDistances,
        weights: AttentionWeights,
        memory: tf.Tensor | None = None,
        is_reversed: tf.Tensor | None = None,
        causal: bool = False,
        dropout_rate: float = 0.0,
        dropout_seed: tf.Tensor | None = None,
        recompute: bool = False,
        return_probabilities: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor | None]:
        rest = memory, is_reversed, causal, dropout_rate, dropout_seed
        recompute = recompute and dropout_seed is not None
        is_unusual = return_probabilities or hidden_states.dtype == tf.float64
        if is_unusual and isinstance(sinusoids, FactoredSinusoids):
            sinusoids = sinusoids.of_distances()
        is_static = _has_static_sizes(mask) and not is_unusual
        if is_static or isinstance(sinusoids, FactoredSinusoids):
            inputs = hidden_states, mask, sinusoids, weights
            return _fast_attention(*inputs, *rest, recompute), None
        if return_probabilities or not recompute:
            return reference(hidden_states, mask, sinusoids, weights, *rest)

        def output_of(seed, hidden_states, *weights):
            inputs = hidden_states, mask, sinusoids, AttentionWeights(*weights)
            return reference(*inputs, *rest[:-1], seed)[0]

        return recomputed(output_of)(dropout_seed, hidden_states, *weights), None

    return attention


def _has_static_sizes(mask: TwoStreamMask) -> bool:
    sizes_QK = sizes(mask.content.positions)[1], sizes(mask.keys.order)[1]
    return all(isinstance(size, int) for size in sizes_QK)


def _fast_attention(
    hidden_states, mask, sinusoids, weights, memory, is_reversed, causal, rate, seed, recompute
):
    num_keys = sizes(mask.keys.order)[1]
    num_tokens = num_keys - (0 if memory is None else sizes(memory)[1])
    num_content = sizes(mask.content.positions)[1]
    has_query = mask.query.positions.shape[1] != 0
    counts = [num_tokens, *([sizes(mask.query.positions)[1]] if has_query else [])]
    content_BTD = tf.split(hidden_states, counts, axis=1)[0]
    key_BNKH = _project_keys(content_BTD, memory, weights.key)
    value_BNKH = _project_keys(content_BTD, memory, weights.value)
    is_static = isinstance(num_tokens, int) and isinstance(num_content, int)
    has_all = not is_static or num_content == num_tokens
    if not has_all:
        hidden_states = hidden_states[:, num_tokens - num_content :]
    if isinstance(sinusoids, FactoredSinusoids):
        position = weights.position
    elif isinstance(sinusoids, ProjectedDistances):
        position = sinusoids.between(num_tokens, num_keys)
    else:
        position = project_distances(sinusoids, weights.position, is_reversed)

    def stream(number, rows):
        if isinstance(sinusoids, FactoredSinusoids):
            positions = None if number == 0 and has_all else rows.positions
            return _Stream(number, rows, sinusoids.of_rows(positions, is_reversed), None)
        if number == 0 or _are_last(rows.positions, num_tokens):
            consecutive = ConsecutiveRows(rows.positions.shape[1], num_keys)
            return _Stream(number, rows, consecutive, consecutive)
        return stream_anywhere(number, rows, TargetRows(num_tokens, num_keys))

    rows_of_all = enumerate((mask.content, mask.query))
    streams = [stream(n, rows) for n, rows in rows_of_all if rows.positions.shape[1] != 0]
    projected = key_BNKH, value_BNKH, position
    return attend_streams(
        hidden_states, streams, mask.keys, weights, projected, causal, rate, seed, recompute
    )


def stream_anywhere(number: int, rows: Rows, shift: TargetRows) -> _Stream:
    """A stream whose rows may be at any positions, which are given for each window."""
    if rows.positions.shape[0] == 1:
        rows = rows._replace(positions=rows.positions + tf.zeros_like(rows.segment_ids))
    return _Stream(number, rows, shift, shift)


def _are_last(position_BX: tf.Tensor, num_tokens: int) -> bool:
    """Whether rows are known to be at the last X positions of the window."""
    positions = tf.get_static_value(position_BX)
    if positions is None or positions.shape[1] > num_tokens:
        return False
    return bool((positions == np.arange(num_tokens)[-positions.shape[1] :]).all())


def attend_streams(
    hidden_states,
    streams: list[_Stream],
    keys: Keys,
    weights: AttentionWeights,
    projected: tuple[tf.Tensor, tf.Tensor, tf.Tensor],
    causal: bool,
    rate: float,
    seed: tf.Tensor | None,
    recompute: bool = False,
) -> tf.Tensor:
    """The output [B, X, D] from projected keys, values and positions."""
    counts = [sizes(stream.rows.segment_ids)[1] for stream in streams]
    queries = _query_terms(hidden_states, weights, counts, is_training=seed is not None)
    attended = []
    for stream, terms in zip(streams, queries, strict=True):
        stream_seed = fold_in(seed, stream.number)  # Each has a dropout mask of its own.
        attend_stream: Callable = functools.partial(_attend_stream, stream, keys, causal, rate)
        if recompute:
            attend_stream = recomputed(attend_stream)
        key, value, position = projected
        if device() == "GPU" and stream.number == 1:
            # XLA would copy both streams into one array for one product with the same keys.
            key, value = _computed_once(key), _computed_once(value)
        attended.append(attend_stream(stream_seed, *terms, key, value, position))
    return from_heads(tf.concat(attended, axis=2), weights.output)


@tf.custom_gradient
def _computed_once(x: tf.Tensor):
    return computed_once(x), lambda upstream: upstream


def _attend_stream(
    stream: _Stream,
    keys,
    causal,
    rate,
    seed,
    by_content,
    by_position,
    segment,
    key,
    value,
    position,
):
    content_BNXK = multiply(by_content, key, transpose_b=True)
    terms = ScoreTerms(content_BNXK, stream.positional.scores(by_position, position), segment)
    return attend(terms, value, stream.rows, keys, stream.shift, causal, rate, seed)


def _query_terms(hidden_states, weights: AttentionWeights, counts, is_training: bool):
    """For each stream (q + r_w) / √H, (q + r_r) / √H and the segment term."""
    query_BNXH = to_heads(hidden_states, weights.query)
    kernel: Callable = fused if is_training else functools.partial
    d_head = weights.query.shape[-1]
    different_NH = weights.segment[1] - weights.segment[0]
    terms = (
        kernel(biased_query, d_head)(query_BNXH, weights.content_bias),
        kernel(biased_query, d_head)(query_BNXH, weights.position_bias),
        kernel(segment_term, d_head)(query_BNXH, weights.segment_bias, different_NH),
    )
    return list(zip(*(tf.split(term, counts, axis=2) for term in terms), strict=True))


def biased_query(d_head: int, query_BNXH: tf.Tensor, bias_NH: tf.Tensor) -> tf.Tensor:
    """(q + r) / √H, so that scores need not be divided."""
    return (query_BNXH + bias_NH[:, None]) * tf.cast(d_head**-0.5, query_BNXH.dtype)


def segment_term(
    d_head: int, query_BNXH: tf.Tensor, bias_NH: tf.Tensor, different_NH: tf.Tensor
) -> tf.Tensor:
    """(q + r_s)·(s_different - s_same) / √H, [B, N, X]; softmax ignores the rest of the term."""
    return tf.reduce_sum(biased_query(d_head, query_BNXH, bias_NH) * different_NH[:, None], axis=-1)


def _project_keys(content_BTD, memory_BMD, kernel_DNH):
    projected = to_heads(content_BTD, kernel_DNH)
    if memory_BMD is None:
        return projected
    memory = to_heads(tf.stop_gradient(memory_BMD), kernel_DNH)
    return tf.concat([memory, projected], axis=2)


def project_distances(sinusoids, kernel_DNH, is_reversed_B):
    """Projected distances [1 or B, N, R, H]; of reversed rows, with negated sines."""
    kernels = tf.split(kernel_DNH, 2, axis=0)
    sine_1NRH, cosine_1NRH = (
        to_heads(tf.cast(half, kernel_DNH.dtype)[None], kernel)
        for half, kernel in zip(sinusoids, kernels, strict=True)
    )
    if is_reversed_B is None:
        return sine_1NRH + cosine_1NRH
    direction_B = 1 - 2 * tf.cast(is_reversed_B, tf.int32)  # -1 negates all distances.
    direction = tf.cast(direction_B, kernel_DNH.dtype)[:, None, None, None]
    return cosine_1NRH + direction * sine_1NRH
