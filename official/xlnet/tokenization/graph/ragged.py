"""Ragged tensor operations: ranges, slices and padding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import tensorflow as tf


def ragged(rows: Sequence[Sequence[int] | np.ndarray]) -> tf.RaggedTensor:
    """Returns a ragged tensor int32 [N, (length)] of rows of integers."""
    values = np.concatenate([np.zeros(0, np.int32), *rows], dtype=np.int32, casting="unsafe")
    return tf.RaggedTensor.from_row_lengths(
        values, np.array([*map(len, rows)], np.int64), validate=False
    )


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
    slice_index, place = ranges(length)
    values = tf.gather(ragged.values, tf.gather(first, slice_index) + place)
    return tf.RaggedTensor.from_row_lengths(values, tf.cast(length, tf.int64), validate=False)


def left_padded(ragged: tf.RaggedTensor, length: int | tf.Tensor, padding: int) -> tf.Tensor:
    """Pads rows on the left to one length, at least the length of the longest row.

    Args:
      ragged: ragged tensor [N, (…)].
      length: T.
      padding: the value to pad with; 0 for False.

    Returns:
      A tensor [N, T].

    Example:
      >>> left_padded(tf.ragged.constant([[1, 2], []]), 3, 9).numpy().tolist()
      [[9, 1, 2], [9, 9, 9]]
    """
    index = tf.range(length) - length + tf.cast(ragged.row_limits(), tf.int32)[:, tf.newaxis]
    is_padding = index < tf.cast(ragged.row_starts(), tf.int32)[:, tf.newaxis]
    values = tf.concat([ragged.values, tf.cast([padding], ragged.dtype)], axis=0)
    return tf.gather(values, tf.where(is_padding, tf.size(ragged.values), index))


def rows_of(features: dict[str, tf.RaggedTensor]) -> list[dict[str, np.ndarray]]:
    """Returns the rows of ragged tensors with the same row lengths, as dictionaries of arrays."""
    splits = next(iter(features.values())).row_splits.numpy().tolist()
    arrays = {name: x.values.numpy() for name, x in features.items()}
    return [
        {name: x[start:stop] for name, x in arrays.items()}
        for start, stop in itertools.pairwise(splits)
    ]
