"""Compressed files, recognized by their first bytes: gzip, bz2, xz and zstd."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import zstandard

from official.xlnet.errors import DataError
from official.xlnet.files import file_system

_ZSTD_INPUT_BYTES = 1 << 15  # Small, since it may decompress to a thousand times the size.
_EXTENSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}
# First bytes that no text in UTF-8 has.
_MARKS = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BZIP2 = b"1AY&SY"  # After "BZh" and a digit.


def compression(path: str) -> str | None:
    """Compression of a file: `gzip`, `bz2`, `xz`, `zstd`, or None.

    Args:
      path: path or URL of the file. Its first bytes decide, or else its extension.
    """
    with file_system.open(path, "rb") as file:
        start = file.read(10)
    for mark, kind in _MARKS.items():
        if start.startswith(mark):
            return kind
    return "bz2" if start[4:] == _BZIP2 else _EXTENSIONS.get(os.path.splitext(path)[1].lower())


def ending(path: str) -> str:
    """The extension of a file, in lower case; of a compressed one, the extension before.

    Example:
      >>> ending("train.CSV.gz")
      '.csv'
    """
    stem, extension = os.path.splitext(path.lower())
    return ending(stem) if extension in _EXTENSIONS else extension


@contextlib.contextmanager
def open_stream(path: str) -> Iterator[tuple[Any, IO[bytes]]]:
    """Context manager that opens a file in binary mode and decompresses it if necessary.

    Args:
      path: path or URL of the file.

    Yields:
      The decompressed stream, and the underlying file, whose position measures progress.

    Raises:
      DataError: inside the block, if the compressed file is invalid or truncated.
    """
    kind = compression(path)
    try:
        with file_system.open(path, "rb") as file:
            yield (file if kind is None else _DECOMPRESS[kind](file)), file
    except (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise DataError(f"{path}: expected a complete {kind} file: {error}") from None
    except OSError as error:
        if error.errno is None and kind is not None:  # Bad magic numbers are reported as OSError.
            raise DataError(f"{path}: expected a {kind} file: {error}") from None
        raise


class _ZstdFile(io.RawIOBase):
    """Reader of multi-frame zstd files that, unlike the library's, detects truncated files."""

    def __init__(self, file: IO[bytes]):
        super().__init__()
        self._file = file
        self._decompressor: Any = None
        self._pending = b""  # Compressed bytes of the next frame.
        self._out = memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the start of a buffer; returns the number of bytes, 0 at the end of the file."""
        while not self._out:
            data = self._pending or self._file.read(_ZSTD_INPUT_BYTES)
            if not data:
                if self._decompressor is not None:
                    raise EOFError("compressed file ended before the end of a frame")
                return 0
            if self._decompressor is None:
                self._decompressor = zstandard.ZstdDecompressor().decompressobj()
            self._out = memoryview(self._decompressor.decompress(data))
            self._pending = self._decompressor.unused_data  # After the end of a frame.
            if self._decompressor.eof:
                self._decompressor = None
        size = min(len(buffer), len(self._out))
        buffer[:size], self._out = self._out[:size], self._out[size:]
        return size


_DECOMPRESS: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": gzip.open,
    "bz2": bz2.open,
    "xz": lzma.open,
    "zstd": lambda file: io.BufferedReader(_ZstdFile(file)),
}
