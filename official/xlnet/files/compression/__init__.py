"""Compressed files, recognized by their first bytes: gzip, bz2, xz and zstd."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from official.xlnet.files import file_system

if TYPE_CHECKING:
    from official.xlnet.files.urls.file_entry import FileEntry

MARK_BYTES = 10  # By which a compression is recognized.
EXTENSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".lzma": "xz", ".zst": "zstd"}
_MARKS = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh\d1AY&SY)|(?P<xz>\xfd7zXZ\0)|(?P<zstd>\x28\xb5\x2f\xfd)"
)


def compression(head: bytes, path: str) -> str | None:
    """Returns the compression of a file: `gzip`, `bz2`, `xz`, `zstd`, or None.

    Args:
      head: its first bytes, `MARK_BYTES` or more.
      path: its path or URL, whose extension decides if the bytes do not.
    """
    match = _MARKS.match(head)
    return match.lastgroup if match else EXTENSIONS.get(os.path.splitext(path)[1].lower())


def ending(path: str) -> str:
    """Returns the extension of a file in lower case, without that of a compression.

    Example:
      >>> ending("train.CSV.gz")
      '.csv'
    """
    stem, extension = os.path.splitext(path.lower())
    return ending(stem) if extension in EXTENSIONS else extension


@contextlib.contextmanager
def open_stream(
    path: str, entry: FileEntry | None = None, buffering: int = -1
) -> Iterator[tuple[Any, IO[bytes]]]:
    """Context manager that opens a file in binary mode and decompresses it if necessary.

    Args:
      path: path or URL of the file.
      entry: the file as it was found, see `file_system.open_entry`.
      buffering: as for `file_system.open`.

    Yields:
      The decompressed stream, and the underlying file, whose position measures progress; the same
      file twice if it is not compressed.

    Raises:
      DataError: inside the block, if the compressed file is invalid or truncated.
    """
    if entry is None:
        opened = file_system.open(path, "rb", buffering)
    else:
        opened = file_system.open_entry(entry, buffering)
    with opened as file:
        compression_type = compression(file.read(MARK_BYTES), path)
        file.seek(0)
        if compression_type is None:
            yield file, file
            return
        from official.xlnet.files.compression.decompression import decompressed

        with decompressed(file, compression_type, path) as stream:
            yield stream, file
