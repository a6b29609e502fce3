"""Reading a remote file in independent requests, so that a request that failed can be repeated."""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile

from official.xlnet.errors import require_data
from official.xlnet.projects.buckets.libraries import library_of
from official.xlnet.projects.buckets.requests import call
from official.xlnet.projects.buckets.versions import (
    ReplacedError,
    is_condition,
    read_range,
    version_in,
)

if TYPE_CHECKING:
    import fsspec

    from official.xlnet.files.urls.file_entry import FileEntry

BLOCK_BYTES = 8 << 20  # Bytes of a remote file per request.


def open_remote(url: str, buffering: int = -1, entry: FileEntry | None = None) -> Any:
    """Opens a remote file for reading in binary mode.

    Args:
      url: the file.
      buffering: bytes of a request, 0 for a request per call of `read`; by default `BLOCK_BYTES`.
      entry: the file in a listing; of another version, nothing is read.

    Raises:
      FileNotFoundError: there is no file.
      DataError: while reading, the file was replaced or a request returned a part of its bytes.
    """
    raw = _open_unbuffered(url, entry)
    if buffering == 0:
        return raw
    return io.BufferedReader(raw, buffering if buffering > 1 else BLOCK_BYTES)


def version_of(url: str) -> str:
    """Returns a version of a remote file, which changes whenever it is written."""
    return call(url, lambda library, name: library.ukey(name))


def _open_unbuffered(url: str, entry: FileEntry | None) -> Any:
    library = library_of(url)
    if entry is not None and is_condition(library, entry.version):
        return _remote_file(library, url, entry.size, entry.version)
    info = call(url, lambda library, name: library.info(name))
    size = info["size"]
    is_web = url.startswith(("http://", "https://"))
    if size != 0 and is_web and not call(url, _serves_ranges):
        return call(url, lambda library, name: _web_cache().open(name))
    return _remote_file(library, url, size, version_in(info))


def _remote_file(
    library: fsspec.AbstractFileSystem, url: str, size: int | None, version: str
) -> _RemoteFile:
    file = _RemoteFile(library, library._strip_protocol(url), size=size, cache_type="none")
    file.url = url
    file.version = version
    file.is_checked = not is_condition(library, file.version)
    return file


class _RemoteFile(AbstractBufferedFile):
    """A remote file of one version, read by one request for each range of bytes.

    Attributes:
      url: the file.
      version: its version when it was opened.
      is_checked: whether the version is asked for after each request.
    """

    url: str
    version: str
    is_checked: bool

    def _fetch_range(self, start: int, end: int) -> bytes:
        end = min(end, self.size)

        def read(library: fsspec.AbstractFileSystem, name: str) -> bytes:
            return read_range(library, name, start, end, self.version, self.url)

        data = call(self.url, read)
        if self.is_checked:
            info = call(self.url, lambda library, name: library.info(name))
            if version_in(info) != self.version:
                raise ReplacedError(self.url)
        is_complete = len(data) == end - start
        require_data(is_complete, self.url, f"bytes {start} to {end}", f"{len(data)} bytes")
        return data


def _serves_ranges(library: fsspec.AbstractFileSystem, url: str) -> bool:
    """Whether a web server sends a range of bytes; some send a file only as a whole."""
    try:
        with library.open(url, cache_type="none") as file:
            file.seek(1)
            return bool(file.read(1))
    except ValueError:  # fsspec's error for a server that sends the whole file.
        return False


@functools.cache
def _web_cache() -> fsspec.AbstractFileSystem:
    """Local copies of files whose web server sends them as a whole, until the process ends."""
    import fsspec

    return fsspec.filesystem("simplecache", target_protocol="http")
