"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from official.xlnet.errors import require_data
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
      temporary_dir: directory of the temporary file, on the same file system; by default,
        the directory of `path`.

    Raises:
      OSError: the file cannot be written; the error names `path`.

    Example:
      >>> with atomic_write("out/manifest.json") as file:
      ...     file.write(b"{}")
    """
    if file_system.is_remote(path):
        with tempfile.TemporaryDirectory(prefix="xlnet-") as directory:
            local = os.path.join(directory, "file")
            with open(local, "wb") as file:
                yield file
            file_system.upload(local, path)
        return
    with replaced(path, temporary_dir) as temporary, open(temporary, "wb") as file:
        yield file


def write_bytes(path: str, content: bytes, temporary_dir: str | None = None) -> None:
    """Writes a file atomically; see `atomic_write`."""
    with atomic_write(path, temporary_dir) as file:
        file.write(content)


@contextlib.contextmanager
def replaced(path: str, temporary_dir: str | None = None) -> Iterator[str]:
    """Context manager that replaces a local file; `atomic_write` for code that opens by itself.

    Yields the path to write to, which is `path` itself for a pipe, a terminal or another device.

    Args:
      path: see `atomic_write`.
      temporary_dir: see `atomic_write`.
    """
    if is_stream(path):
        yield path
        return
    path_of_file = os.path.realpath(path)
    folder = os.path.dirname(path_of_file) if temporary_dir is None else temporary_dir
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        with contextlib.suppress(FileNotFoundError):  # A new file.
            shutil.copymode(path_of_file, temporary)
        os.replace(temporary, path_of_file)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise_with_name(error, temporary, path)


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Context manager that creates a directory atomically.

    Yields a temporary directory, which is renamed to `path` if the block succeeds, and removed
    otherwise.

    Args:
      path: the directory to create.

    Raises:
      DataError: `path` exists and is not an empty directory.
      OSError: a file cannot be written; the error names it as it would be called in `path`.
    """
    path = os.path.realpath(path)
    require_data(
        not os.path.exists(path) or (os.path.isdir(path) and not os.listdir(path)),
        f"{path!r}",
        "a new or an empty folder",
        "one with files in it",
    )
    temporary = os.path.join(os.path.dirname(path), f".{uuid.uuid4().hex}.tmp")
    os.makedirs(temporary)
    try:
        yield temporary
        os.replace(temporary, path)
    except Exception as error:
        raise_with_name(error, temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def raise_with_name(error: Any, temporary: str, path: str) -> NoReturn:
    """Raises an error of a temporary file again, with the name that the user gave."""
    if isinstance(error, OSError) and error.errno:
        # ENOSPC has no file name; copying names both files, and fails at the second one.
        names = [str(name) for name in (error.filename2, error.filename) if name] or [temporary]
        if any(temporary in name for name in names):
            name = names[0].replace(temporary, path).replace(os.path.realpath(path), path)
            raise OSError(error.errno, error.strerror, name) from None
    if hasattr(error, "node_def") and temporary in str(error):  # An error of TensorFlow.
        message = error.message.replace(temporary, path)
        raise type(error)(error.node_def, error.op, message) from None
    raise error


def is_stream(path: str) -> bool:
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
