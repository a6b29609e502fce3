"""Operations on files and directories, by local path or by URL, such as `s3://bucket/name`.

Python handles local paths. A URL is passed to the file system of its scheme, see `urls`.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import shutil
import stat
from typing import IO, Any

from official.xlnet.errors import require_data
from official.xlnet.files.urls import file_system_of, is_remote
from official.xlnet.files.urls.file_entry import FileEntry

__all__ = [
    "create",
    "exists",
    "fail_at_once",
    "find",
    "glob",
    "is_dir",
    "is_file",
    "is_remote",
    "is_shared",
    "make_dirs",
    "names",
    "open",
    "open_entry",
    "read_bytes",
    "remove",
    "remove_tree",
    "size",
    "version",
]


def open(path: str, mode: str = "r", buffering: int = -1, **options: Any) -> IO[Any]:
    """Opens a file for reading; see `atomic.atomic_write` for writing.

    Args:
      path: a local path or a URL.
      mode: `r` or `rb`.
      buffering: as for Python's `open`.
      **options: `encoding` and `errors`, as for Python's `open`.

    Raises:
      FileNotFoundError: there is no file.
      DataError: it is a pipe, a device or a socket, which may never end.
    """
    if is_remote(path):
        file = file_system_of(path).open(path, buffering)
        return file if "b" in mode else io.TextIOWrapper(file, **options)
    _require_regular(path)
    return builtins.open(path, mode, buffering, **options)


def open_entry(entry: FileEntry, buffering: int = -1) -> IO[bytes]:
    """Opens a file that `find` has found, for reading in binary mode.

    In a bucket it is not asked for again: it is read as it was found, or it is an error.

    Args:
      entry: the file.
      buffering: as for `open`; in a bucket, bytes of a request, 0 for one for each `read`.

    Raises:
      FileNotFoundError: the file was removed.
      DataError: while reading, it was replaced.
    """
    if is_remote(entry.path):
        return file_system_of(entry.path).open_entry(entry, buffering)
    return open(entry.path, "rb", buffering)


def _require_regular(path: str) -> None:
    """Raises `DataError` for pipes, devices and sockets; Python itself refuses directories."""
    file_mode = os.stat(path).st_mode
    if stat.S_ISREG(file_mode) or stat.S_ISDIR(file_mode):
        return
    file_type = "a pipe" if stat.S_ISFIFO(file_mode) else "a device or a socket"
    got = f"{file_type}; copy its content to a file"
    require_data(False, path, "a regular file", got)


def read_bytes(path: str) -> bytes:
    """Returns the content of a regular file."""
    if is_remote(path):
        return file_system_of(path).read_bytes(path)
    with open(path, "rb") as file:
        return file.read()


def exists(path: str) -> bool:
    """Whether there is a file or a directory; on an object store, a directory of some file."""
    if is_remote(path):
        return file_system_of(path).file_type(path) is not None
    return os.path.exists(path)


def is_file(path: str) -> bool:
    """Whether there is a file."""
    if is_remote(path):
        return file_system_of(path).file_type(path) == "file"
    return os.path.isfile(path)


def is_dir(path: str) -> bool:
    """Whether there is a directory."""
    if is_remote(path):
        return file_system_of(path).file_type(path) == "directory"
    return os.path.isdir(path)


def size(path: str) -> int:
    """Returns the size of a file in bytes.

    Raises:
      FileNotFoundError: there is no file.
    """
    if is_remote(path):
        return file_system_of(path).size(path)
    return os.path.getsize(path)


def version(path: str) -> int | str:
    """Returns a version of a file, which changes whenever it is written: its time in ns, or a key.

    Raises:
      FileNotFoundError: there is no file.
    """
    if is_remote(path):
        return file_system_of(path).version(path)
    return os.stat(path).st_mtime_ns


def names(directory: str) -> list[str]:
    """Returns the names of the files and directories in a directory, in no particular order.

    Raises:
      FileNotFoundError: there is no directory.
    """
    if is_remote(directory):
        return file_system_of(directory).names(directory)
    return os.listdir(directory)


def glob(pattern: str) -> list[str]:
    """Returns the paths that match a pattern; `**` matches directories recursively."""
    if is_remote(pattern):
        return file_system_of(pattern).glob(pattern)
    from official.xlnet.files.local_glob import local_glob

    return local_glob(pattern)


def find(pattern: str) -> list[FileEntry]:
    """Returns the file of a path, or else the files that match it as a pattern, see `glob`.

    In a bucket these are two or three requests, and another one for each 1,000 files.
    """
    if is_remote(pattern):
        return file_system_of(pattern).find(pattern)
    entries = []
    for path in [pattern] if os.path.isfile(pattern) else glob(pattern):
        with contextlib.suppress(OSError):  # A link to a file that does not exist.
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode):
                entries.append(FileEntry(path, status.st_size, str(status.st_mtime_ns)))
    return entries


def make_dirs(directory: str) -> None:
    """Makes a local directory and those above it; for a URL, writing a file makes them."""
    if not is_remote(directory):
        os.makedirs(directory, exist_ok=True)


def remove(path: str) -> None:
    """Removes a file.

    Raises:
      FileNotFoundError: there is none.
    """
    if is_remote(path):
        file_system_of(path).remove(path)
    else:
        os.unlink(path)


def remove_tree(directory: str) -> None:
    """Removes a directory with all that is in it, if there is one."""
    if is_remote(directory):
        with contextlib.suppress(FileNotFoundError):
            file_system_of(directory).remove_tree(directory)
    else:
        shutil.rmtree(directory, ignore_errors=True)


def create(path: str, content: bytes) -> None:
    """Writes a file that does not exist yet, and does nothing if it exists.

    This is atomic on disks and on object stores with conditional writes (S3, GCS); on others, the
    later of two simultaneous writers wins.
    """
    with contextlib.suppress(FileExistsError):
        if is_remote(path):
            file_system_of(path).create(path, content)
        else:
            with builtins.open(path, "xb") as file:
                file.write(content)


def is_shared(path: str) -> bool:
    """Whether other processes of this machine can read a file that this one has written."""
    return not is_remote(path) or file_system_of(path).is_shared(path)


def fail_at_once(path: str) -> None:
    """From now on, this thread's calls to the file system of a URL fail at their first fault."""
    if is_remote(path):
        file_system_of(path).fail_at_once()
