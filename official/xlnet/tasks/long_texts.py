"""Texts to sequences of up to `task.max_length` tokens: one, windows of a long text, or segments.

Fine-tuning, prediction and the exported graph call the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.configs.task import TaskConfig
from official.xlnet.tokenization.graph.packing import Features, needed_lengths, pack


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
        from official.xlnet.tasks.text_windows import windows

        return windows(columns, task, length)
    if task.long_texts == "memory":
        from official.xlnet.tasks.text_windows import segments

        features = pack(columns, length * task.max_windows, task.truncation_side)
        needed_B = needed_lengths(columns)
        return segments(features, task.max_windows, length), needed_B > length * task.max_windows
    orders = task.text_orders(len(columns))
    texts = [tf.concat([columns[order[i]] for order in orders], axis=0) for i in orders[0]]
    features = pack(texts, length, task.truncation_side)
    if len(orders) > 1:
        index_X = tf.range(len(orders) * columns[0].nrows(tf.int32))
        index_X = tf.reshape(tf.transpose(tf.reshape(index_X, [len(orders), -1])), [-1])
        features = {name: tf.gather(x, index_X) for name, x in features.items()}
    return features, needed_lengths(columns) > length
