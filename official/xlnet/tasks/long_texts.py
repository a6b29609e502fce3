"""Texts to sequences of up to `task.max_length` tokens: one, windows of a long text, or segments.

Fine-tuning, prediction and the exported graph call the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.configs.task import TaskConfig
from official.xlnet.tokenization.graph.packing import Features, needed_lengths, only, pack
from official.xlnet.tokenization.graph.ragged import slices


def num_sequences(task: TaskConfig, num_texts: int) -> int:
    """The number of sequences that an example is packed into, S; see `read`."""
    return len(task.text_orders(num_texts)) if task.long_texts == "truncate" else task.max_windows


def read(
    columns: Sequence[tf.RaggedTensor], task: TaskConfig, length: int
) -> tuple[Features, tf.Tensor]:
    """Packs the texts of B examples into S sequences each.

    S is 1 or, of texts that are read in several orders, their number (`task.text_orders`); of
    windows or segments of long texts, `task.max_windows`.

    Args:
      columns: for each text of an example, token ids int32 [B, (number of tokens)].
      task: settings of the task.
      length: maximum number of tokens of a sequence, T.

    Returns:
      features: `token_ids` and `segment_ids`, ragged int32 [B·S, (number of tokens)]; a sequence
        that an example does not need has no tokens.
      is_truncated: whether tokens were left out, bool [B].
    """
    if task.long_texts == "windows":
        return _windows(columns, task, length)
    if task.long_texts == "memory":
        features = pack(columns, length * task.max_windows, task.truncation_side)
        needed_B = needed_lengths(columns)
        return _segments(features, task.max_windows, length), needed_B > length * task.max_windows
    orders = task.text_orders(len(columns))
    texts = [tf.concat([columns[order[i]] for order in orders], axis=0) for i in orders[0]]
    features = pack(texts, length, task.truncation_side)
    if len(orders) > 1:
        index_X = tf.range(len(orders) * columns[0].nrows(tf.int32))
        index_X = tf.reshape(tf.transpose(tf.reshape(index_X, [len(orders), -1])), [-1])
        features = {name: tf.gather(x, index_X) for name, x in features.items()}
    return features, needed_lengths(columns) > length


def _segments(features: Features, num_segments: int, length: int) -> Features:
    """Splits long sequences into segments of `length` tokens; the first may be shorter."""
    size_B = tf.cast(features["token_ids"].row_lengths(), tf.int32)
    stop_BS = tf.maximum(size_B[:, None] - length * tf.range(num_segments - 1, -1, -1), 0)
    start_X = tf.reshape(tf.maximum(stop_BS - length, 0), [-1])
    row_X = tf.repeat(tf.range(tf.size(size_B)), num_segments)
    length_X = tf.reshape(stop_BS, [-1]) - start_X
    return {name: slices(x, row_X, start_X, length_X) for name, x in features.items()}


def _windows(columns, task: TaskConfig, length: int) -> tuple[Features, tf.Tensor]:
    """Sliding windows over the longest text, each with the other texts in full."""
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
    windows = []
    for index, column in enumerate(columns):
        is_longest_X = tf.gather(longest_B, row_X) == index
        length_X = tf.gather(lengths_BC[:, index], row_X)
        first_X = tf.where(is_longest_X, tf.minimum(start_X, length_X), 0)
        kept_X = tf.minimum(length_X - first_X, tf.gather(room_B, row_X))
        windows.append(slices(column, row_X, first_X, tf.where(is_longest_X, kept_X, length_X)))
    features = pack(windows, length, task.truncation_side)
    return only(features, tf.reshape(exists_BW, [-1])), lost_B > 0
