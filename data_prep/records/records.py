"""Serialization of windows to TFRecord files, without TensorFlow.

A record is a serialized `tf.train.Example`. For speed, the token ids of a chunk of text are encoded
once as protobuf varints, and windows are assembled from slices of these bytes. The frames of
records in a file are those of `official.xlnet.data.record_files.framing`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from data_prep.records.windows import Windows
from official.xlnet.data.schema import SCALAR_FEATURES
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID

_MAX_VARINT_BITS = 21  # Three bytes of 7 bits.
_SEP = bytes([SEP_ID])
_SEP_CLS = bytes([SEP_ID, CLS_ID])
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
    scalars["window_id"] = list(range(first_id, first_id + len(a_end)))
    rows = zip(*(scalars[name] for name in SCALAR_FEATURES), strict=True)
    for start, stop, b_start, b_stop, row in zip(*slices, rows, strict=True):
        num_bytes = stop - start + b_stop - b_start + len(_SEP + _SEP_CLS)
        features = (
            _head(_TOKENS, num_bytes),
            encoded[start:stop],
            _SEP,
            encoded[b_start:b_stop],
            _SEP_CLS,
            *map(_scalar_entry, _SCALARS, row),
        )
        yield _delimited(_FIELD_1, b"".join(features))


def varints(values: np.ndarray) -> tuple[bytes, np.ndarray]:
    r"""Encodes integers below 2^21 as protobuf varints (7 bits per byte).

    Args:
      values: unsigned integers [N].

    Returns:
      data: the concatenated varints.
      offset: int64 [N + 1], position of each varint in `data`, and the total length.

    Example:
      >>> varints(np.array([1, 300], np.uint16))
      (b'\x01\xac\x02', array([0, 1, 3]))
    """
    words, is_used, size = _varint_tables(int(values.max(initial=0)).bit_length())
    offset = np.zeros(len(values) + 1, np.int64)
    np.cumsum(size.take(values), out=offset[1:])
    chosen = is_used.take(values).view(bool)
    return np.compress(chosen, words.take(values).view(np.uint8)).tobytes(), offset


@functools.cache
def _varint_tables(num_bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lookup tables of varints up to `num_bits` bits: bytes, mask of used bytes, and length."""
    assert num_bits <= _MAX_VARINT_BITS
    values = np.arange(1 << num_bits, dtype="<u4")
    size = 1 + (values >= 1 << 7).astype(np.int64) + (values >= 1 << 14)
    words = values & 0x7F | (values & 0x7F << 7) << 1 | (values & 0x7F << 14) << 2
    words |= np.array([0, 0x80, 0x8080], "<u4")[size - 1]
    is_used = np.array([0x1, 0x0101, 0x010101], "<u4")[size - 1]
    return words, is_used, size


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 1 << 7:
        out.append(value & 0x7F | 1 << 7)
        value >>= 7
    out.append(value)
    return bytes(out)


_length = functools.cache(_varint)


def _delimited(tag: bytes, data: bytes) -> bytes:
    return tag + _length(len(data)) + data


@functools.cache
def _head(key: bytes, num_bytes: int) -> bytes:
    """Bytes that precede the packed integers of an entry of the `Features` map.

    The entry has a key and a `Feature` with an `Int64List` of packed integers.
    """
    int64_list = _FIELD_1 + _varint(num_bytes)
    feature = _FIELD_3 + _varint(len(int64_list) + num_bytes) + int64_list
    value = _FIELD_2 + _varint(len(feature) + num_bytes) + feature
    return _FIELD_1 + _varint(len(key) + len(value) + num_bytes) + key + value


@functools.lru_cache(maxsize=1 << 16)
def _scalar_entry(key: bytes, value: int) -> bytes:
    varint = _varint(value)
    return _head(key, len(varint)) + varint


_TOKENS = _delimited(_FIELD_1, b"token_ids")
_SCALARS = [_delimited(_FIELD_1, name.encode()) for name in SCALAR_FEATURES]
