"""Keys and values of earlier positions, for decoding token by token."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official.xlnet.modeling.ops.shapes import sizes


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
