"""Decompression of files, whose damage is always an error."""

from __future__ import annotations

import bz2
import contextlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

import zstandard

from official.xlnet.errors import DataError

_INPUT_BYTES = 1 << 15  # Small, since zstd may decompress to a thousand times the size.
_MOST_BYTES = 1 << 20  # Decompressed at once.

# Functions that create the decompressor of a stream.
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": lambda: zstandard.ZstdDecompressor().decompressobj(),
}
_TAKE_LIMITS = (bz2.BZ2Decompressor, lzma.LZMADecompressor)  # Of bytes to decompress at once.


@contextlib.contextmanager
def decompressed(file: IO[bytes], compression_type: str, path: str) -> Iterator[IO[bytes]]:
    """Context manager that yields the decompressed content of a file.

    Args:
      file: the compressed file.
      compression_type: `gzip`, `bz2`, `xz` or `zstd`.
      path: path of the file, for messages.

    Raises:
      DataError: inside the block, if the file is invalid or truncated.
    """
    try:
        yield io.BufferedReader(_DecompressedFile(file, _DECOMPRESSORS[compression_type]))
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        is_about_file = getattr(error, "errno", None) is not None
        if is_about_file:
            raise
        raise DataError(f"{path}: expected a complete {compression_type} file: {error}") from None


def _decompressed_blocks(
    file: IO[bytes], new_decompressor: Callable[[], Any]
) -> Iterator[memoryview]:
    """Yields decompressed blocks of a file of one or more streams, and raises errors for damage.

    The readers of `bz2` and `lzma` ignore a damaged second stream; the reader of `zstandard`
    ignores that a file is truncated. NUL bytes may follow a stream.

    Args:
      file: the compressed file.
      new_decompressor: creates the decompressor of a stream.
    """
    data = padding = b""
    while data := data or file.read(_INPUT_BYTES):
        data = data.lstrip(padding)
        if not data:
            continue
        decompressor = new_decompressor()
        limits = (_MOST_BYTES,) if isinstance(decompressor, _TAKE_LIMITS) else ()
        while not decompressor.eof:
            if getattr(decompressor, "needs_input", True):
                data = data or file.read(_INPUT_BYTES)
                if not data:
                    raise EOFError("compressed file ended before the end of a stream")
            yield memoryview(decompressor.decompress(data, *limits))
            data = b""
        data = decompressor.unused_data
        padding = b"\0"


class _DecompressedFile(io.RawIOBase):
    """The decompressed content of a file.

    Args:
      file: the compressed file.
      new_decompressor: creates the decompressor of a stream.
    """

    def __init__(self, file: IO[bytes], new_decompressor: Callable[[], Any]):
        self._blocks = _decompressed_blocks(file, new_decompressor)
        self._block = memoryview(b"")

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the start of a buffer; returns the number of bytes, 0 at the end of the file."""
        while not self._block:
            next_block = next(self._blocks, None)
            if next_block is None:
                return 0
            self._block = next_block
        size = min(len(buffer), len(self._block))
        buffer[:size] = self._block[:size]
        self._block = self._block[size:]
        return size
