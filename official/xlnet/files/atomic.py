"""Atomic file writes."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import uuid
from collections.abc import Iterator
from typing import IO

from official.xlnet.files import file_system

_UNFINISHED = re.compile(r".*\.[0-9a-f]{32}\.tmp")


@contextlib.contextmanager
def atomic_write(path: str, temporary_dir: str | None = None) -> Iterator[IO[bytes]]:
    """Context manager that writes a file atomically.

    Yields a temporary file, which is renamed to `path` if the block succeeds, and removed
    otherwise. For a URL, the temporary file is on the local disk and is uploaded.

    Args:
      path: the file to write, of any kind. A file is replaced, a link is followed; a pipe, a
        terminal or another device is written to as it is.
      temporary_dir: directory of the temporary file, on the same file system; that of `path` by
        default.

    Raises:
      OSError: the file cannot be written; the error names `path`.

    Example:
      >>> with atomic_write("out/manifest.json") as file:
      ...     file.write(b"{}")
    """
    if file_system.is_remote(path):
        with file_system.uploaded(path) as file:
            yield file
        return
    with replaced(path, temporary_dir) as temporary, open(temporary, "wb") as file:
        yield file


@contextlib.contextmanager
def replaced(path: str, temporary_dir: str | None = None) -> Iterator[str]:
    """Context manager that replaces a local file; `atomic_write` for code that opens by itself.

    Yields the path to write to, which is `path` itself for a pipe, a terminal or another device.

    Args:
      path: see `atomic_write`.
      temporary_dir: see `atomic_write`.
    """
    if _is_stream(path):
        yield path
        return
    path_of_file = os.path.realpath(path)
    folder = os.path.dirname(path_of_file) if temporary_dir is None else temporary_dir
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, path_of_file)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            # ENOSPC has no file name; that of the temporary file says nothing to a user.
            raise OSError(error.errno, error.strerror, path) from None
        raise


def _is_stream(path: str) -> bool:
    """Whether a path is a pipe, a terminal or another device, or one that the process has open."""
    if os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True  # Even where standard output is a file: others hold it open.
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def remove_unfinished(directory: str) -> None:
    """Removes the temporary files of killed processes; nobody may be writing to the directory.

    Args:
      directory: the directory; its subdirectories are left alone.
    """
    for entry in os.scandir(directory):
        if entry.is_file() and _UNFINISHED.fullmatch(entry.name):
            os.unlink(entry.path)
