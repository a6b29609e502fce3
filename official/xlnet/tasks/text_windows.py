"""Windows and segments of long texts; see `long_texts`."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.configs.task import TaskConfig
from official.xlnet.tokenization.graph.packing import Features, only, pack
from official.xlnet.tokenization.graph.ragged import slices


def segments(features: Features, num_segments: int, length: int) -> Features:
    """Splits long sequences into segments of `length` tokens; the first may be shorter."""
    size_B = tf.cast(features["token_ids"].row_lengths(), tf.int32)
    stop_BS = tf.maximum(size_B[:, None] - length * tf.range(num_segments - 1, -1, -1), 0)
    start_X = tf.reshape(tf.maximum(stop_BS - length, 0), [-1])
    row_X = tf.repeat(tf.range(tf.size(size_B)), num_segments)
    length_X = tf.reshape(stop_BS, [-1]) - start_X
    return {name: slices(x, row_X, start_X, length_X) for name, x in features.items()}


def windows(
    columns: Sequence[tf.RaggedTensor], task: TaskConfig, length: int
) -> tuple[Features, tf.Tensor]:
    """Packs sliding windows over the longest text, each with the other texts in full.

    Arguments and results: see `long_texts.read`.
    """
    num_windows = task.max_windows
    lengths_BC = tf.stack([tf.cast(c.row_lengths(), tf.int32) for c in columns], axis=1)
    longest_B = tf.argmax(lengths_BC, axis=1, output_type=tf.int32)
    size_B = tf.reduce_max(lengths_BC, axis=1)
    others_B = tf.reduce_sum(lengths_BC, axis=1) - size_B
    room_B = tf.maximum(1, length - others_B - len(columns) - 1)
    stride_B = tf.minimum(task.window_stride, room_B)
    lost_B = tf.maximum(0, size_B - (room_B + stride_B * (num_windows - 1)))
    start_BW = stride_B[:, None] * tf.range(num_windows)
    exists_BW = (start_BW + (room_B - stride_B)[:, None] < size_B[:, None]) | (start_BW == 0)
    if task.truncation_side == "left":
        start_BW += lost_B[:, None]
    row_X = tf.repeat(tf.range(tf.size(size_B)), num_windows)
    start_X = tf.reshape(start_BW, [-1])
    texts = []
    for index, column in enumerate(columns):
        is_longest_X = tf.gather(longest_B, row_X) == index
        length_X = tf.gather(lengths_BC[:, index], row_X)
        first_X = tf.where(is_longest_X, tf.minimum(start_X, length_X), 0)
        kept_X = tf.minimum(length_X - first_X, tf.gather(room_B, row_X))
        texts.append(slices(column, row_X, first_X, tf.where(is_longest_X, kept_X, length_X)))
    features = pack(texts, length, task.truncation_side)
    return only(features, tf.reshape(exists_BW, [-1])), lost_B > 0
