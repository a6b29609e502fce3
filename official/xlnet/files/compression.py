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

_INPUT_BYTES = 1 << 15  # Small, since zstd may decompress to a thousand times the size.
_MOST_BYTES = 1 << 20  # Decompressed at once.
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


class _Members(io.RawIOBase):
    """Reader of files of one or more streams, which detects damaged and truncated ones.

    The readers of `bz2` and `lzma` end without an error before a second stream that is damaged;
    that of `zstandard` does at the end of a truncated file. NUL bytes may follow a stream.

    Args:
      file: the compressed file.
      new: creates the decompressor of a stream.
      most: maximum number of bytes to decompress at once, where the decompressor takes one.
    """

    def __init__(self, file: IO[bytes], new: Callable[[], Any], *most: int):
        super().__init__()
        self._file, self._new, self._most = file, new, most
        self._decompressor: Any = None
        self._pending = b""  # Compressed bytes of the next stream.
        self._out = memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the start of a buffer; returns the number of bytes, 0 at the end of the file."""
        while not self._out:
            data = self._pending
            if not data and getattr(self._decompressor, "needs_input", True):
                data = self._file.read(_INPUT_BYTES)
                if not data and self._decompressor is not None:
                    raise EOFError("compressed file ended before the end of a stream")
                if not data:
                    return 0
            if self._decompressor is None:
                data, self._pending = data.lstrip(b"\0"), b""
                if not data:
                    continue
                self._decompressor = self._new()
            self._out = memoryview(self._decompressor.decompress(data, *self._most))
            self._pending = self._decompressor.unused_data  # After the end of a stream.
            if self._decompressor.eof:
                self._decompressor = None
        size = min(len(buffer), len(self._out))
        buffer[:size], self._out = self._out[:size], self._out[size:]
        return size


def _members(new: Callable[[], Any], *most: int) -> Callable[[IO[bytes]], Any]:
    return lambda file: io.BufferedReader(_Members(file, new, *most))


_DECOMPRESS: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": gzip.open,
    "bz2": _members(bz2.BZ2Decompressor, _MOST_BYTES),
    "xz": _members(lzma.LZMADecompressor, _MOST_BYTES),
    "zstd": _members(lambda: zstandard.ZstdDecompressor().decompressobj()),
}
