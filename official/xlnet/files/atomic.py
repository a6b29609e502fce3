"""Atomic file writes."""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Iterator
from typing import IO

from official.xlnet.files import file_system

_UNFINISHED = re.compile(r".+\.[0-9a-f]{32}\.tmp")


@contextlib.contextmanager
def atomic_write(path: str, temporary_dir: str | None = None) -> Iterator[IO[bytes]]:
    """Context manager that writes a file atomically.

    Yields a temporary file, which is renamed to `path` if the block succeeds, and removed
    otherwise. For a URL, the temporary file is on the local disk and is uploaded.

    Args:
      path: the file to write, of any kind; replaced if it exists.
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
    folder = os.path.dirname(path) if temporary_dir is None else temporary_dir
    temporary = os.path.join(folder, f"{os.path.basename(path)}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and not error.filename:
            raise OSError(error.errno, error.strerror, path) from None  # ENOSPC has no file name.
        raise


def remove_unfinished(directory: str) -> None:
    """Removes the temporary files of killed processes; nobody may be writing to the directory.

    Args:
      directory: the directory; its subdirectories are left alone.
    """
    for entry in os.scandir(directory):
        if entry.is_file() and _UNFINISHED.fullmatch(entry.name):
            os.unlink(entry.path)
