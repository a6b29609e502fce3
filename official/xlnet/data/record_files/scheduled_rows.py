"""The rows of batches as TensorFlow reads them: each its lanes, one after the other."""

from __future__ import annotations

import os

import tensorflow as tf

from official.xlnet.data.lane_schedule import LaneSchedule
from official.xlnet.data.record_features import NUM_REPORTED_IDS, WRONG
from official.xlnet.data.schema import Manifest, SplitManifest


def records_of_rows(
    path: str,
    manifest: Manifest,
    lanes: SplitManifest,
    schedule: LaneSchedule,
    rows: range,
    start_step: int,
    is_new: bool,
) -> tf.data.Dataset:
    """Returns a dataset of serialized records, string []: the windows of rows, step by step.

    Args:
      path: directory of the data set.
      manifest: its manifest.
      lanes: manifest entry of the split.
      schedule: assigns windows to rows and steps.
      rows: the rows of a batch that are read.
      start_step: first step to read.
      is_new: whether every lane is read from its start, as in a new run.
    """
    files = [os.path.join(path, name) for name in lanes.files]
    if is_new:

        def read_lane(number: tf.Tensor, window: tf.Tensor) -> tf.data.Dataset:
            file = tf.gather(files, number % lanes.num_lanes)
            return tf.data.TFRecordDataset(file, manifest.compression)

    else:
        from official.xlnet.data.record_files.lane_from import LaneReader, begun_lanes

        begun = begun_lanes(schedule, start_step, rows)
        read_lane = LaneReader(files, lanes.windows_per_lane, manifest.compression, begun).read

    def lanes_of(row: tf.Tensor) -> tf.data.Dataset:
        """The lanes that a row reads in sequence: (number, index of the first window)."""

        def next_lane(step: tf.Tensor, _) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
            lane, window, _ = schedule.at(step, row[tf.newaxis])
            return step + lanes.windows_per_lane - window[0], (lane[0], window[0])

        start = tf.constant(start_step, tf.int64)
        return tf.data.Dataset.from_tensors(0).repeat().scan(start, next_lane)

    def open_lane(lane_number: tf.Tensor, window: tf.Tensor) -> tf.data.Dataset:
        lane = read_lane(lane_number, window)
        # Without the length, a row would go on for ever through lanes that are empty.
        return lane.apply(tf.data.experimental.assert_cardinality(lanes.windows_per_lane - window))

    # The dataset of a row is infinite, so rows keep their place in the cycle.
    return tf.data.Dataset.range(rows.start, rows.stop).interleave(
        lambda row: lanes_of(row).flat_map(open_lane),
        cycle_length=len(rows),
        block_length=1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )


def with_schedule(
    batch: dict[str, tf.Tensor],
    manifest: Manifest,
    lanes: SplitManifest,
    lane_number: tf.Tensor,
    window: tf.Tensor,
    memory_from: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Verifies that a batch holds the scheduled windows, and adds what depends on the schedule.

    That is the epoch, and the part of the context that the row has read.

    Args:
      batch: features of the windows.
      manifest: manifest of the data set.
      lanes: manifest entry of the split.
      lane_number: see `LaneSchedule.at`.
      window: see `LaneSchedule.at`.
      memory_from: see `LaneSchedule.at`.
    """
    expected = lane_number % lanes.num_lanes * lanes.windows_per_lane + window
    in_order = tf.debugging.Assert(
        tf.reduce_all(batch["window_id"] == expected),
        [f"{WRONG}windows out of order: expected window ids", expected, "got"]
        + [batch["window_id"]],
        summarize=NUM_REPORTED_IDS,
    )
    read_before = tf.cast((window - memory_from) * manifest.reuse_len, tf.int32)
    with tf.control_dependencies([in_order]):
        return {
            **batch,
            "context_length": tf.minimum(batch["context_length"], read_before),
            "epoch": tf.cast(lane_number // lanes.num_lanes, tf.int32),
            "follows": batch["window_id"] - 1,
        }
