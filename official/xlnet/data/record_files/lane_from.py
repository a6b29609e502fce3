"""The windows of lanes from one in their middle on, where a run is resumed.

`TFRecordDataset.skip` would read a lane from its start. As records have nearly the same length,
the byte at which a window begins is searched for by interpolation: a few reads, however long the
lane. It is searched for before the data set is built, which then consists of TensorFlow's own
operations: it may be read on another host than this one, as of a remote TPU or tf.data service.
Compressed lanes are read from their start.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from official.xlnet.data.lane_schedule import LanePosition, LaneSchedule
from official.xlnet.data.record_files.framing import first_frame, whole_frames

_READ_BYTES = 1 << 16
_RECORDS_OF_A_READ = 8  # At least, on average: anywhere in a file, it has a whole record.
_MOST_PROBES = 64
_NUM_THREADS = 32  # They wait for file systems of a network.


def begun_lanes(schedule: LaneSchedule, step: int, rows: range) -> list[LanePosition]:
    """Returns the partially read lanes that some rows may continue from a step on."""
    position = schedule.position(step)
    of_rows = [position.rows[row] for row in rows]
    return [lane for lane in (*of_rows, *position.waiting) if lane is not None and lane.window]


class LaneReader:
    """Reads lanes, of which some begin in their middle.

    Args:
      files: record files of all lanes.
      windows_per_lane: number of windows of a lane.
      compression: compression of the files, see `Manifest`.
      begun: partially read lanes, at their next windows.
    """

    def __init__(
        self,
        files: Sequence[str],
        windows_per_lane: int,
        compression: str,
        begun: Sequence[LanePosition],
    ):
        self._files = list(files)
        self._compression = compression

        def position_of(lane: LanePosition) -> int:
            index = lane.number % len(files)
            first_id = index * windows_per_lane
            return window_position(
                files[index], first_id, lane.window, windows_per_lane, compression
            )

        with concurrent.futures.ThreadPoolExecutor(_NUM_THREADS) as pool:
            positions = list(pool.map(position_of, begun))
        # In front, so that there is one: no lane has this number.
        self._numbers = np.array([-1, *(lane.number for lane in begun)])
        self._windows = np.array([0, *(lane.window for lane in begun)])
        self._positions = np.array([0, *positions])

    def read(self, number: tf.Tensor, window: tf.Tensor) -> tf.data.Dataset:
        """Returns `lane_from` of a lane.

        Args:
          number: int64 [], number of the lane, counted over all epochs.
          window: int64 [], index of the first window; 0, or that of a partially read lane.
        """
        is_it = tf.equal(self._numbers, number) & tf.equal(self._windows, window)
        position = tf.reduce_max(tf.where(is_it, self._positions, 0))
        path = tf.gather(self._files, number % len(self._files))
        return lane_from(path, position, window, self._compression)


def lane_from(
    path: str | tf.Tensor, position: int | tf.Tensor, window: int | tf.Tensor, compression: str
) -> tf.data.Dataset:
    """Returns the serialized records of a lane from a window on, string [].

    Args:
      path: string [], record file of the lane.
      position: int64 [], `window_position` of the window.
      window: int64 [], index of the window in the lane.
      compression: compression of the file, see `Manifest`.

    Raises:
      tf.errors.DataLossError: when a damaged record is read; see `reading_errors`.
    """

    def read(path: tf.Tensor, position: tf.Tensor, window: tf.Tensor) -> tf.data.Dataset:
        records = tf.raw_ops.TFRecordDatasetV2(
            filenames=[path],
            compression_type=compression,
            buffer_size=_READ_BYTES,
            byte_offsets=[position],
        )
        lane = tf.data.experimental.from_variant(records, tf.TensorSpec([], tf.string))
        # Without a position, TensorFlow reads the file, and tells what is wrong with it.
        return lane.skip(tf.where(position > 0, tf.constant(0, tf.int64), window))

    # In a function, as TensorFlow serializes this operation without its byte offsets (2.20).
    numbers = [tf.cast(number, tf.int64) for number in (position, window)]
    return tf.data.Dataset.from_tensors((path, *numbers)).flat_map(read)


def window_position(
    path: str, first_id: int, window: int, windows_per_lane: int, compression: str = ""
) -> int:
    """Returns the byte at which the record of a window begins; 0 if it is not found.

    Args:
      path: record file of a lane.
      first_id: id of its first window.
      window: index of the window in the lane.
      windows_per_lane: number of windows of the lane.
      compression: compression of the file, see `Manifest`; if it has one, no window is found.
    """
    if compression or not window or not os.path.isfile(path):
        return 0
    size = os.path.getsize(path)
    num_bytes = max(_READ_BYTES, _RECORDS_OF_A_READ * size // windows_per_lane)
    # A window at or before the one sought and one after it, and where their records begin.
    low, low_at, high, high_at = 0, 0, windows_per_lane, size
    with open(path, "rb") as file:
        for probe in range(_MOST_PROBES):
            if high_at - low_at <= num_bytes:
                at = low_at
            elif probe % 2:
                at = (low_at + high_at) // 2
            else:
                expected = low_at + (high_at - low_at) * (window - low) // (high - low)
                at = max(low_at, expected - num_bytes // 2)
            file.seek(at)
            first_window, positions = _windows_in(file.read(num_bytes))
            first_window -= first_id
            if not positions or not low <= first_window < high:
                break
            if first_window <= window < first_window + len(positions):
                return at + positions[window - first_window]
            if first_window > window:
                high, high_at = first_window, at + positions[0]
            else:
                low, low_at = first_window + len(positions) - 1, at + positions[-1]
    return 0


def _windows_in(data: bytes) -> tuple[int, list[int]]:
    """Id of the first whole window in a part of a file, and the positions of all whole ones."""
    start = first_frame(data)
    positions: list[int] = []
    first_id = 0
    try:
        for position, record in whole_frames(data, start) if start >= 0 else ():
            if not positions:
                example = tf.train.Example.FromString(record)
                (first_id,) = example.features.feature["window_id"].int64_list.value
            positions.append(position)
    except (DecodeError, ValueError):
        return 0, []
    return first_id, positions
