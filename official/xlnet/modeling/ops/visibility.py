"""Which keys a row of attention may attend to: by order, or by a mask of its own."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official.xlnet.modeling.ops.shapes import sizes

# Orders of keys that every row, or no row, may attend to.
ALWAYS_VISIBLE, NEVER_VISIBLE = tf.int32.min, tf.int32.max


class OrderedRows(NamedTuple):
    """Rows that attend to the keys whose order is at most their own.

    Attributes:
      order: int32 [B, Q].
      segment_ids: int32 [B, Q].
      positions: int32 [B or 1, Q], positions in the window.
    """

    order: tf.Tensor
    segment_ids: tf.Tensor
    positions: tf.Tensor


class MaskedRows(NamedTuple):
    """Rows that attend to the keys that their own mask allows.

    Attributes:
      can_attend: bool [B, Q, K].
      segment_ids: int32 [B, Q].
      positions: int32 [B or 1, Q], positions in the window.
    """

    can_attend: tf.Tensor
    segment_ids: tf.Tensor
    positions: tf.Tensor


Rows = OrderedRows | MaskedRows


class Keys(NamedTuple):
    """Keys: M of memory, then T of the window.

    Attributes:
      order: int32 [B, K]; ALWAYS_VISIBLE in valid memory, NEVER_VISIBLE in padding and in memory
        of another document.
      segment_ids: int32 [B, K]; memory is in segment 0.
      positions: int32 [K], positions in the window; negative in memory.
    """

    order: tf.Tensor
    segment_ids: tf.Tensor
    positions: tf.Tensor


class TwoStreamMask(NamedTuple):
    """The rows of both streams, and the keys that they attend to.

    Attributes:
      content: rows of the content stream, Q = T.
      query: rows of the query stream, Q = P; P is 0 where no query stream is wanted.
      keys: the keys of both.
    """

    content: Rows
    query: Rows
    keys: Keys


def named(mask: TwoStreamMask | list) -> TwoStreamMask:
    """The mask with named fields, which the layers of a loaded `.keras` file get as lists."""
    if isinstance(mask, TwoStreamMask):
        return mask
    content, query, keys = mask
    rows: type[Rows] = MaskedRows if content[0].shape.rank == 3 else OrderedRows
    return TwoStreamMask(rows(*content), rows(*query), Keys(*keys))


def last_rows(rows: Rows, num_rows: int) -> Rows:
    """The last of some rows."""
    first = sizes(rows.segment_ids)[1] - num_rows
    return type(rows)(*(field[:, first:] for field in rows))


def can_attend(rows: Rows, keys: Keys, causal: bool) -> tf.Tensor:
    """The attention mask, bool [B, Q, K].

    Args:
      rows: the rows that attend.
      keys: the keys.
      causal: whether keys at later positions than the row's are hidden (`uni` attention).

    Example: content rows whose order is 0, 2, 1, no memory:
      [[1, 0, 0],
       [1, 1, 1],
       [1, 0, 1]]
    """
    if isinstance(rows, MaskedRows):
        visible_BQK = rows.can_attend
    else:
        visible_BQK = keys.order[:, None, :] <= rows.order[:, :, None]
    if causal:
        visible_BQK &= keys.positions <= rows.positions[:, :, None]
    return visible_BQK
