"""Windows to the bytes of a TFRecord file.

A record is a serialized `tf.train.Example`, written here without TensorFlow: ids become
protobuf's variable-length integers once per stretch of text, and a window is put together from
slices of those bytes. TFRecord frames it:

    length (8 bytes) | masked CRC-32C of length | data | masked CRC-32C of data
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c
import numpy as np

from data_prep.windows import Windows
from official.xlnet.features import CLS_ID, SCALAR_FEATURES, SEP_ID

_MASK_DELTA = 0xA282EAD8
_SEP = bytes([SEP_ID])
_SEP_CLS = bytes([SEP_ID, CLS_ID])
# Tags of protobuf fields: number << 3 | wire type 2 (length-delimited).
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def encode_windows(
    token_ids: np.ndarray, windows: Windows, reuse_len: int, is_reversed: bool, first_id: int
) -> Iterator[bytes]:
    """Yields one serialized `tf.train.Example` per window.

    Args:
      token_ids: unsigned [text_len], the stretch of text.
      windows: positions in it.
      reuse_len: tokens of the reuse part.
      is_reversed: whether the text is reversed.
      first_id: `window_id` of the first window.
    """
    encoded, offset = varints(token_ids)
    a_end = windows.start + reuse_len + windows.a_length
    b_end = windows.b_start + windows.b_length
    slices = [offset[x].tolist() for x in (windows.start, a_end, windows.b_start, b_end)]
    scalars = {name: x.tolist() for name, x in zip(Windows._fields, windows, strict=True)}
    scalars["is_reversed"] = [int(is_reversed)] * len(a_end)
    scalars["window_id"] = list(range(first_id, first_id + len(a_end)))
    rows = zip(*(scalars[name] for name in SCALAR_FEATURES), strict=True)
    for start, stop, b_start, b_stop, row in zip(*slices, rows, strict=True):
        tokens = encoded[start:stop] + _SEP + encoded[b_start:b_stop] + _SEP_CLS
        features = [_entry(_TOKENS, tokens), *map(_scalar_entry, _SCALARS, row)]
        yield _delimited(_FIELD_1, b"".join(features))


def varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    r"""Encodes numbers below 2^21 as protobuf's variable-length integers, 7 bits a byte.

    Args:
      values: unsigned [N].

    Returns:
      The bytes of all numbers, one after the other, and int64 [N + 1], where each begins.

    Example:
      >>> varints(np.array([1, 300], np.uint16))
      (b'\x01\xac\x02', array([0, 1, 3]))
    """
    assert not len(values) or values.max() < 1 << 21
    more_than_1 = values >= 1 << 7
    more_than_2 = values >= 1 << 14
    offset = np.zeros(len(values) + 1, np.int64)
    np.cumsum(1 + more_than_1 + more_than_2.view(np.int8), out=offset[1:])
    encoded = np.empty(offset[-1], np.uint8)
    first = offset[:-1]
    encoded[first] = values & 0x7F | more_than_1.view(np.uint8) << 7
    encoded[first[more_than_1] + 1] = (
        values[more_than_1] >> 7 & 0x7F | more_than_2[more_than_1].view(np.uint8) << 7
    )
    encoded[first[more_than_2] + 2] = values[more_than_2] >> 14
    return encoded.tobytes(), offset


class RecordWriter:
    """Frames records as TFRecord does and keeps the SHA-256 of the file."""

    def __init__(self, file: BinaryIO):
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, records: Iterator[bytes]) -> None:
        """Appends records."""
        framed: list[bytes] = []
        for record in records:
            length = struct.pack("<Q", len(record))
            framed += (length, _masked_crc(length), record, _masked_crc(record))
        data = b"".join(framed)
        self._digest.update(data)
        self._file.write(data)

    @property
    def sha256(self) -> str:
        """SHA-256 of what has been written, in hexadecimal."""
        return self._digest.hexdigest()


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 1 << 7:
        out.append(value & 0x7F | 1 << 7)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(tag: bytes, data: bytes) -> bytes:
    return tag + _varint(len(data)) + data


def _entry(key: bytes, packed: bytes) -> bytes:
    """Entry of the `Features` map: a key and a `Feature` with an `Int64List`."""
    int64_list = _delimited(_FIELD_1, packed)
    feature = _delimited(_FIELD_3, int64_list)
    return _delimited(_FIELD_1, key + _delimited(_FIELD_2, feature))


@functools.lru_cache(maxsize=1 << 16)
def _scalar_entry(key: bytes, value: int) -> bytes:
    return _entry(key, _varint(value))


_TOKENS = _delimited(_FIELD_1, b"token_ids")
_SCALARS = [_delimited(_FIELD_1, name.encode()) for name in SCALAR_FEATURES]
