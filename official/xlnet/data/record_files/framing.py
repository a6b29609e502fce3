"""Frames of records in TFRecord files:

length (8 bytes) | masked CRC-32C of length | data | masked CRC-32C of data
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Iterator

import google_crc32c

HEAD_BYTES = 12  # Length and its checksum.
FOOT_BYTES = 4  # Checksum of the data.
_MASK_DELTA = 0xA282EAD8  # Constant of the masked CRC in TFRecord.
_HIGH_BYTES = bytes(4)  # Upper half of the length of a record below 4 GiB.


def framed(records: Iterable[bytes]) -> bytes:
    """Frames serialized records as in a TFRecord file."""
    parts: list[bytes] = []
    for record in records:
        parts += (_frame_head(len(record)), record, _masked_crc(record))
    return b"".join(parts)


def first_frame(data: bytes) -> int:
    """Returns the position of the first frame in bytes from anywhere in a file; -1 if none.

    It is recognized by the checksum of its length.
    """
    zeros = data.find(_HIGH_BYTES, 4)
    while zeros >= 0:
        position = zeros - 4
        if _is_head(data[position : position + HEAD_BYTES]):
            return position
        zeros = data.find(_HIGH_BYTES, zeros + 1)
    return -1


def frame_end(data: bytes, position: int) -> int:
    """Returns the position after a frame, which may be beyond the end of the data.

    Args:
      data: part of a file, with the whole head of the frame.
      position: position of the frame.

    Raises:
      ValueError: its head is damaged.
    """
    head = data[position : position + HEAD_BYTES]
    if not _is_head(head):
        raise ValueError("damaged length of a record")
    return position + HEAD_BYTES + struct.unpack_from("<Q", head)[0] + FOOT_BYTES


def whole_frames(data: bytes, position: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yields (position, record) of each whole frame, one after the other.

    Args:
      data: part of a file.
      position: position of the first frame.

    Raises:
      ValueError: a record or its length is damaged.
    """
    while position + HEAD_BYTES <= len(data):
        end = frame_end(data, position)
        if end > len(data):
            return
        record = data[position + HEAD_BYTES : end - FOOT_BYTES]
        if _masked_crc(record) != data[end - FOOT_BYTES : end]:
            raise ValueError("damaged record")
        yield position, record
        position = end


def _is_head(head: bytes) -> bool:
    return len(head) == HEAD_BYTES and _masked_crc(head[:8]) == head[8:]


@functools.cache
def _frame_head(num_bytes: int) -> bytes:
    length = struct.pack("<Q", num_bytes)
    return length + _masked_crc(length)


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)
