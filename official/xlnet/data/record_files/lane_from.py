"""The windows of a lane from one in its middle on, where a run is resumed.

`TFRecordDataset.skip` would read the lane from its start. As records have nearly the same length,
the byte at which a window begins is searched for by interpolation: a few reads, however long the
lane. Compressed lanes are read from their start.
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from official.xlnet.data.record_features import WRONG
from official.xlnet.data.record_files.framing import (
    HEAD_BYTES,
    first_frame,
    frame_end,
    whole_frames,
)

_READ_BYTES = 1 << 16
_RECORDS_OF_A_READ = 8  # At least, on average: anywhere in a file, it has a whole record.
_MOST_PROBES = 64


def lane_from(
    path: tf.Tensor,
    first_id: tf.Tensor,
    window: tf.Tensor,
    windows_per_lane: int,
    compression: str,
) -> tf.data.Dataset:
    """Returns the serialized records of a lane from a window on, string [].

    Args:
      path: string [], record file of the lane.
      first_id: int64 [], id of its first window.
      window: int64 [], index of the window in the lane.
      windows_per_lane: number of windows of the lane.
      compression: compression of the file, see `Manifest`.

    Raises:
      tf.errors.InvalidArgumentError: when a damaged record is read; see `reading_errors`.
    """
    whole = tf.data.TFRecordDataset(path, compression)
    if compression:
        return whole.skip(window)
    arguments = [path, first_id, window, windows_per_lane]
    position = tf.ensure_shape(tf.numpy_function(window_position, arguments, tf.int64), [])
    # Without a position, TensorFlow reads the file, and tells what is wrong with it.
    none, every = tf.constant(0, tf.int64), tf.constant(-1, tf.int64)
    is_known = position > 0
    whole = whole.skip(window).take(tf.where(is_known, none, every))
    return whole.concatenate(_from_position(path, position).take(tf.where(is_known, every, none)))


def window_position(path: bytes, first_id: int, window: int, windows_per_lane: int) -> np.int64:
    """Returns the byte at which the record of a window begins; 0 if it is not found.

    Args:
      path: uncompressed record file of a lane.
      first_id: id of its first window.
      window: index of the window in the lane.
      windows_per_lane: number of windows of the lane.
    """
    if not window or not os.path.isfile(path):
        return np.int64(0)
    # In a graph these are int32 and int64, which products with sizes of files exceed.
    first_id, window, windows_per_lane = int(first_id), int(window), int(windows_per_lane)
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
                return np.int64(at + positions[window - first_window])
            if first_window > window:
                high, high_at = first_window, at + positions[0]
            else:
                low, low_at = first_window + len(positions) - 1, at + positions[-1]
    return np.int64(0)


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


def _from_position(path: tf.Tensor, position: tf.Tensor) -> tf.data.Dataset:
    """The records from a byte on at which one begins."""

    def read(at: tf.Tensor, _) -> tuple[tf.Tensor, tf.Tensor]:
        end, records = tf.numpy_function(read_records, [path, at], [tf.int64, tf.string])
        return tf.ensure_shape(end, []), tf.ensure_shape(records, [None])

    parts = tf.data.Dataset.from_tensors(0).repeat().scan(position, read)
    parts = parts.take_while(lambda records: tf.size(records) > 0)
    return parts.flat_map(tf.data.Dataset.from_tensor_slices)


def read_records(path: bytes, position: int) -> tuple[np.int64, np.ndarray]:
    """Reads some records; none at the end of the file.

    Args:
      path: uncompressed record file.
      position: byte at which a record begins.

    Returns:
      The byte after them, and the serialized records, bytes [N].

    Raises:
      ValueError: a record is damaged.
    """
    try:
        with open(path, "rb") as file:
            file.seek(position)
            data = file.read(_READ_BYTES)
            if len(data) >= HEAD_BYTES and (end := frame_end(data, 0)) > len(data):
                data += file.read(end - len(data))
        frames = list(whole_frames(data))
        if data and not frames:
            raise ValueError("truncated record")
    except ValueError as error:
        place = f"{os.fsdecode(path)}: after byte {position}"
        raise ValueError(f"{WRONG}{place}: expected whole records, got a {error}") from None
    if not frames:
        return np.int64(position), np.array([], object)
    end = frame_end(data, frames[-1][0])
    return np.int64(position + end), np.array([record for _, record in frames], object)
