"""Serialization of windows to TFRecord files, without TensorFlow.

A record is a serialized `tf.train.Example`. For speed, the token ids of a chunk of text are encoded
once as protobuf varints, and windows are assembled from slices of these bytes. The frames of
records in a file are those of `official.xlnet.data.record_files.framing`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import numpy as np

from data_prep.records.windows import Windows
from official.xlnet.data.schema import SCALAR_FEATURES
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID

_SEP = bytes([SEP_ID])
_SEP_CLS = bytes([SEP_ID, CLS_ID])
_NUM_MARKS = len(_SEP + _SEP_CLS)
# Tags of protobuf fields: number << 3 | wire type 2 (length-delimited).
_FIELD_1, _FIELD_2, _FIELD_3 = b"\x0a", b"\x12", b"\x1a"


def encode_windows(
    token_ids: np.ndarray, windows: Windows, reuse_len: int, is_reversed: bool, first_id: int
) -> Iterator[bytes]:
    """Serializes windows as `tf.train.Example`.

    Args:
      token_ids: unsigned integers [text_len], the chunk of text.
      windows: positions of the windows in the chunk.
      reuse_len: length of the reuse part in tokens.
      is_reversed: whether the text is reversed.
      first_id: `window_id` of the first window.

    Yields:
      One serialized example per window.
    """
    encoded, offset = varints(token_ids)
    a_end = windows.start + reuse_len + windows.a_length
    b_end = windows.b_start + windows.b_length
    slices = [offset[x].tolist() for x in (windows.start, a_end, windows.b_start, b_end)]
    scalars = {name: x.tolist() for name, x in zip(Windows._fields, windows, strict=True)}
    scalars["is_reversed"] = [int(is_reversed)] * len(a_end)
    scalars["window_id"] = range(first_id, first_id + len(a_end))
    entries = [map(_ENTRY[name], scalars[name]) for name in SCALAR_FEATURES]
    for start, stop, b_start, b_stop, *entry in zip(*slices, *entries, strict=True):
        num_bytes = stop - start + b_stop - b_start + _NUM_MARKS
        features = (
            _head(_TOKENS, num_bytes),
            encoded[start:stop],
            _SEP,
            encoded[b_start:b_stop],
            _SEP_CLS,
            *entry,
        )
        yield _delimited(_FIELD_1, b"".join(features))


def varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    r"""Encodes integers as protobuf varints (7 bits per byte).

    Args:
      values: unsigned integers [N].

    Returns:
      data: the concatenated varints.
      offset: int64 [N + 1], position of each varint in `data`, and the total length.

    Example:
      >>> varints(np.array([1, 300], np.uint16))
      (b'\x01\xac\x02', array([0, 1, 3]))
    """
    size = np.ones(len(values), np.int8)
    for num_bits in range(7, int(values.max(initial=0)).bit_length(), 7):
        size += values >> num_bits > 0
    offset = np.zeros(len(values) + 1, np.int64)
    np.cumsum(size, out=offset[1:])
    data = np.empty(offset[-1], np.uint8)
    place, rest = offset[:-1], values
    while len(rest):  # The next byte of all values that have one.
        has_more = rest >= 1 << 7
        data[place] = rest & 0x7F | has_more.astype(np.uint8) << 7
        chosen = np.flatnonzero(has_more)
        place, rest = place[chosen] + 1, rest[chosen] >> 7
    return data.tobytes(), offset


def _varint(value: int) -> bytes:
    if value < 1 << 7:
        return bytes((value,))
    return bytes((value & 0x7F | 1 << 7,)) + _cached_varint(value >> 7)


_cached_varint = functools.lru_cache(maxsize=1 << 16)(_varint)


def _delimited(tag: bytes, data: bytes) -> bytes:
    return tag + _cached_varint(len(data)) + data


@functools.cache
def _head(key: bytes, num_bytes: int) -> bytes:
    """Bytes that precede the packed integers of an entry of the `Features` map.

    The entry has a key and a `Feature` with an `Int64List` of packed integers.
    """
    int64_list = _FIELD_1 + _varint(num_bytes)
    feature = _FIELD_3 + _varint(len(int64_list) + num_bytes) + int64_list
    value = _FIELD_2 + _varint(len(feature) + num_bytes) + feature
    return _FIELD_1 + _varint(len(key) + len(value) + num_bytes) + key + value


def _scalar_entry(key: bytes, value: int) -> bytes:
    varint = _varint(value)
    return _head(key, len(varint)) + varint


def _entry_of(name: str) -> Callable[[int], bytes]:
    """Returns the function of a value of a feature that makes its entry of the map."""
    entry = functools.partial(_scalar_entry, _delimited(_FIELD_1, name.encode()))
    return entry if name in _MANY_VALUES else functools.cache(entry)


_TOKENS = _delimited(_FIELD_1, b"token_ids")
_MANY_VALUES = ("context_length", "window_id")  # Seldom twice the same.
_ENTRY = {name: _entry_of(name) for name in SCALAR_FEATURES}
