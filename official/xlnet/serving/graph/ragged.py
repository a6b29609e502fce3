"""Slices of ragged tensors."""

from __future__ import annotations

import tensorflow as tf


def ranges(lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Row and place of every element of rows of some lengths, both int32 [sum of lengths].

    Example:
      >>> ranges([2, 0, 3])
      ([0, 0, 2, 2, 2], [0, 1, 0, 1, 2])
    """
    row = tf.repeat(tf.range(tf.size(lengths)), lengths)
    place = tf.range(tf.size(row)) - tf.gather(tf.cumsum(lengths, exclusive=True), row)
    return row, place


def slices(
    ragged: tf.RaggedTensor, row: tf.Tensor, start: tf.Tensor, length: tf.Tensor
) -> tf.RaggedTensor:
    """Row n of the result is `ragged[row[n], start[n] : start[n] + length[n]]`."""
    first = tf.gather(tf.cast(ragged.row_starts(), tf.int32), row) + start
    which, place = ranges(length)
    values = tf.gather(ragged.values, tf.gather(first, which) + place)
    return tf.RaggedTensor.from_row_lengths(values, tf.cast(length, tf.int64), validate=False)
