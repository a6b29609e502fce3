"""The first windows of a data set: a sample of its training split, to count before a run."""

from __future__ import annotations

import os
from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.data.record_features import window_features
from official.xlnet.data.schema import Manifest, SplitManifest
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.word_starts import word_starts

_FIRST_ROWS = 64  # Windows of a batch.


def first_lanes(split: SplitManifest, num_windows: int) -> list[int]:
    """Returns the lanes whose first windows are read: pairs at equal distances.

    Of a pair, one may be reversed text.

    Args:
      split: the training split.
      num_windows: number of windows to read.
    """
    lanes = split.num_lanes
    rows = max(_FIRST_ROWS, -(-num_windows // split.windows_per_lane))
    rows = min(lanes, rows + rows % 2)
    pairs = [row // 2 * (lanes // 2) // max(1, rows // 2) for row in range(rows)]
    return [2 * pair + row % 2 for row, pair in enumerate(pairs)]


def first_windows(
    path: str, manifest: Manifest, num_windows: int, tokenizer: Tokenizer, phrases: Sequence[str]
) -> tf.data.Dataset:
    """Returns about as many windows of the training split, the first ones of some lanes.

    Args:
      path: directory of the data set.
      manifest: its manifest.
      num_windows: number of windows.
      tokenizer: its tokenizer.
      phrases: see `pretraining_dataset`.

    Returns:
      A dataset of batches of up to 64 windows, as `pretraining_dataset` yields them.
    """
    split = manifest.splits["train"]
    lanes, length = first_lanes(split, num_windows), split.windows_per_lane
    names = list(split.files)
    files = [os.path.join(path, names[lane % split.num_lanes]) for lane in lanes]
    starts = word_starts(tokenizer, phrases)

    def to_batch(records: tf.Tensor) -> dict[str, tf.Tensor]:
        batch = window_features(records, manifest, starts, tokenizer.letter_case)
        read_before = tf.cast(batch["window_id"] % length * manifest.reuse_len, tf.int32)
        batch["context_length"] = tf.minimum(batch["context_length"], read_before)
        batch["epoch"] = tf.zeros_like(read_before)
        batch["follows"] = batch["window_id"] - 1
        return batch

    dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda file: tf.data.TFRecordDataset(file, manifest.compression),
        cycle_length=len(files),
        block_length=1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    dataset = dataset.batch(len(files), drop_remainder=True).map(to_batch)
    num_batches = min(length, -(-num_windows // len(files)))
    return dataset.take(num_batches).rebatch(min(len(files), _FIRST_ROWS))
