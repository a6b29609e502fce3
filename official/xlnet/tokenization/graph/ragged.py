"""Ragged tensor operations: ranges and slices."""

from __future__ import annotations

import tensorflow as tf


def ranges(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the row and column of each element of a ragged tensor.

    Args:
      lengths: row lengths, int32 [B].

    Returns:
      Row and column indices, int32 [sum of lengths] each.

    Example:
      >>> [index.numpy().tolist() for index in ranges([2, 0, 3])]
      [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    row = tf.repeat(tf.range(tf.size(lengths)), lengths)
    place = tf.range(tf.size(row)) - tf.gather(tf.cumsum(lengths, exclusive=True), row)
    return row, place


def slices(
    ragged: tf.RaggedTensor, row: tf.Tensor, start: tf.Tensor, length: tf.Tensor
) -> tf.RaggedTensor:
    """Slices rows: row n of the result is `ragged[row[n], start[n] : start[n] + length[n]]`.

    Args:
      ragged: ragged tensor [B, (…)].
      row: int32 [N].
      start: int32 [N].
      length: int32 [N]; slices must lie within their rows.

    Returns:
      Ragged tensor [N, (…)].
    """
    first = tf.gather(tf.cast(ragged.row_starts(), tf.int32), row) + start
    which, place = ranges(length)
    values = tf.gather(ragged.values, tf.gather(first, which) + place)
    return tf.RaggedTensor.from_row_lengths(values, tf.cast(length, tf.int64), validate=False)
