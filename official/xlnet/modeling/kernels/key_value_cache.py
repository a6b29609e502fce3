"""Attention for decoding token by token: keys and values of earlier positions are kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from official.xlnet.modeling.kernels.attention import (
    attend_streams,
    project_distances,
    stream_anywhere,
)
from official.xlnet.modeling.kernels.matrix_products import to_heads
from official.xlnet.modeling.kernels.relative_shift import TargetRows
from official.xlnet.modeling.ops.attention_weights import AttentionWeights
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.modeling.ops.visibility import TwoStreamMask


class KeyValueCache(NamedTuple):
    """Keys and values of C positions, one slot a position, and the projected distances.

    Attributes:
      keys: [B, N, C, H].
      values: [B, N, C, H].
      positions: [1, N, 2C - 1, H], projections of all distances between C positions.
    """

    keys: tf.Tensor
    values: tf.Tensor
    positions: tf.Tensor

    @property
    def num_slots(self) -> int:
        """Number of slots, C."""
        return self.keys.shape[2]

    def write(
        self, slot_BX: tf.Tensor, key_BNXH: tf.Tensor, value_BNXH: tf.Tensor
    ) -> KeyValueCache:
        """The cache with the keys and values of X rows at their slots."""
        batch_size, num_heads, num_rows, _ = sizes(key_BNXH)
        shape = [batch_size, num_heads, num_rows]
        row_BNX = tf.broadcast_to(tf.range(batch_size)[:, None, None], shape)
        head_BNX = tf.broadcast_to(tf.range(num_heads)[:, None], shape)
        slot_BNX = tf.broadcast_to(slot_BX[:, None], shape)
        index_BNX3 = tf.stack([row_BNX, head_BNX, slot_BNX], axis=3)
        return self._replace(
            keys=tf.tensor_scatter_nd_update(self.keys, index_BNX3, key_BNXH),
            values=tf.tensor_scatter_nd_update(self.values, index_BNX3, value_BNXH),
        )


def new_cache(
    hidden_states: tf.Tensor,
    num_slots: int,
    sinusoids: tuple[Any, Any],
    weights: AttentionWeights,
) -> KeyValueCache:
    """A cache whose first slots hold the keys and values of content rows 0 … T - 1.

    Args:
      hidden_states: [B, T, D], content rows, T <= C.
      num_slots: number of slots, C.
      sinusoids: sinusoids of the distances between C positions.
      weights: the weights of the layer.
    """
    free = [[0, 0], [0, 0], [0, num_slots - hidden_states.shape[1]], [0, 0]]
    return KeyValueCache(
        tf.pad(to_heads(hidden_states, weights.key), free),
        tf.pad(to_heads(hidden_states, weights.value), free),
        project_distances(sinusoids, weights.position, None),
    )


def cached_attention(
    hidden_states: tf.Tensor,
    mask: TwoStreamMask,
    cache: KeyValueCache,
    weights: AttentionWeights,
    causal: bool = False,
    dropout_rate: float = 0.0,
    dropout_seed: tf.Tensor | None = None,
) -> tuple[tf.Tensor, KeyValueCache]:
    """Attention of rows anywhere among the slots of a cache.

    Args:
      hidden_states: [B, T + P, D], T content rows, then P query rows (if any).
      mask: rows of both streams, and the C slots that they may attend to.
      cache: the cache, into which the keys and values of the content rows are written.
      weights: the weights of the layer.
      causal: whether slots at later positions are hidden.
      dropout_rate: dropout rate of the probabilities.
      dropout_seed: int32 [2], or None for no dropout.

    Returns:
      The output [B, T + P, D], and the cache with the content rows in it.
    """
    slots = TargetRows(cache.num_slots, cache.num_slots)
    streams = [
        stream_anywhere(number, rows, slots)
        for number, rows in enumerate((mask.content, mask.query))
        if rows.positions.shape[1] != 0
    ]
    counts = [sizes(stream.rows.positions)[1] for stream in streams]
    content_BTD = tf.split(hidden_states, counts, axis=1)[0]
    key_BNTH = to_heads(content_BTD, weights.key)
    value_BNTH = to_heads(content_BTD, weights.value)
    cache = cache.write(mask.content.positions, key_BNTH, value_BNTH)
    output_BXD = attend_streams(
        hidden_states, streams, mask.keys, weights, cache, causal, dropout_rate, dropout_seed
    )
    return output_BXD, cache
