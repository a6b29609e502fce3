"""Compressed files, recognized by their first bytes: gzip, bz2, xz and zstd."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import zstandard

from official.xlnet.errors import DataError
from official.xlnet.files import file_system

_INPUT_BYTES = 1 << 15  # Small, since zstd may decompress to a thousand times the size.
_MOST_BYTES = 1 << 20  # Decompressed at once.
_EXTENSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}
_MARKS = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh\d1AY&SY)|(?P<xz>\xfd7zXZ\0)|(?P<zstd>\x28\xb5\x2f\xfd)"
)

# {kind: what creates the decompressor of a stream, and the most bytes where it takes a limit}
_DECOMPRESSORS: dict[str, tuple[Any, ...]] = {
    "gzip": (lambda: zlib.decompressobj(wbits=31),),
    "bz2": (bz2.BZ2Decompressor, _MOST_BYTES),
    "xz": (lzma.LZMADecompressor, _MOST_BYTES),
    "zstd": (lambda: zstandard.ZstdDecompressor().decompressobj(),),
}


def compression(path: str) -> str | None:
    """Compression of a file: `gzip`, `bz2`, `xz`, `zstd`, or None.

    Args:
      path: path or URL of the file. Its first bytes decide, or else its extension.
    """
    with file_system.open(path, "rb") as file:
        match = _MARKS.match(file.read(10))
    return match.lastgroup if match else _EXTENSIONS.get(os.path.splitext(path)[1].lower())


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
            new = _DECOMPRESSORS.get(kind or "")
            yield (io.BufferedReader(_Decompressed(file, *new)) if new else file), file
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        if kind is None or getattr(error, "errno", None) is not None:  # Of the file itself.
            raise
        raise DataError(f"{path}: expected a complete {kind} file: {error}") from None


def _streams(file: IO[bytes], new: Callable[[], Any], *most: int) -> Iterator[memoryview]:
    """Decompressed blocks of a file of one or more streams, whose damage is always an error.

    The readers of `bz2` and `lzma` end without an error before a second stream that is damaged;
    that of `zstandard` does at the end of a truncated file. NUL bytes may follow a stream.

    Args:
      file: the compressed file.
      new: creates the decompressor of a stream.
      most: maximum number of bytes to decompress at once, where the decompressor takes one.
    """
    data = padding = b""
    while data := data or file.read(_INPUT_BYTES):
        if data := data.lstrip(padding):
            decompressor = new()
            while not decompressor.eof:
                needs_input = getattr(decompressor, "needs_input", True)
                if needs_input and not (data := data or file.read(_INPUT_BYTES)):
                    raise EOFError("compressed file ended before the end of a stream")
                yield memoryview(decompressor.decompress(data, *most))
                data = b""
            data, padding = decompressor.unused_data, b"\0"


class _Decompressed(io.RawIOBase):
    """The decompressed content of a file; for the arguments, see `_streams`."""

    def __init__(self, file: IO[bytes], new: Callable[[], Any], *most: int):
        self._blocks, self._block = _streams(file, new, *most), memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the start of a buffer; returns the number of bytes, 0 at the end of the file."""
        self._block = self._block or next(filter(None, self._blocks), self._block)
        size = min(len(buffer), len(self._block))
        buffer[:size], self._block = self._block[:size], self._block[size:]
        return size
