"""Atomic writing: files appear whole or not at all; of directories see `new_folder`."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from official.xlnet.files.urls import file_system_of, is_remote

_TEMPORARY = re.compile(r".*\.[0-9a-f]{32}\.tmp")
# File systems of one machine, whose kernel knows their locks.
_LOCAL_FILE_SYSTEMS = frozenset(
    ["bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"]
)


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
    if is_remote(path):
        with tempfile.NamedTemporaryFile(prefix="xlnet-") as temporary_file:
            yield temporary_file
            temporary_file.flush()
            file_system_of(path).upload(temporary_file.name, path)
        return
    if is_stream(path):
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    with temporary_path(temporary_dir or os.path.dirname(target), path) as temporary:
        with open(temporary, "wb") as file:
            yield file
        with contextlib.suppress(FileNotFoundError):  # A new file.
            shutil.copymode(target, temporary)
        _move(temporary, target)


def write_bytes(path: str, content: bytes, temporary_dir: str | None = None) -> None:
    """Writes a file atomically; see `atomic_write`."""
    with atomic_write(path, temporary_dir) as file:
        file.write(content)


@contextlib.contextmanager
def temporary_path(folder: str, path: str, is_folder: bool = False) -> Iterator[str]:
    """Context manager that yields the path of a temporary file or folder, locked and removed later.

    Temporary files and folders that killed processes left are removed, too.

    Args:
      folder: where it is made.
      path: the path that errors name in its place.
      is_folder: whether it is a folder.
    """
    temporary = os.path.join(folder, f".{uuid.uuid4().hex}.tmp")
    try:
        remove_abandoned(folder, _TEMPORARY)
        descriptor = _create_locked(temporary, is_folder)
        try:
            yield temporary
        finally:
            os.close(descriptor)
            _remove(temporary)
    except Exception as error:
        raise_with_name(error, temporary, path)


def _create_locked(path: str, is_folder: bool) -> int:
    while True:
        if is_folder:
            os.makedirs(path, exist_ok=True)
            descriptor = os.open(path, os.O_RDONLY)
        else:
            descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)
        # Before it was locked, another process may have removed it as abandoned.
        if lock(descriptor) and os.path.exists(path):
            return descriptor
        os.close(descriptor)


def _move(temporary: str, path: str) -> None:
    """Renames a file; overwrites a mounted file, which cannot be replaced."""
    try:
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        shutil.copyfile(temporary, path)
        os.unlink(temporary)


def lock(descriptor: int) -> bool:
    """Locks an open file until it is closed; returns False if another process holds its lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # The file system has no locks; nothing is removed there.
        return True
    return True


def remove_abandoned(folder: str, pattern: re.Pattern) -> None:
    """Removes files and folders that killed processes left: no process holds their locks.

    Args:
      folder: their folder. Nothing is removed from a file system that other machines may use.
      pattern: pattern of their names.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if pattern.fullmatch(name) and is_local(folder):
                path = os.path.join(folder, name)
                descriptor = os.open(path, os.O_RDONLY)
                if lock(descriptor):
                    _remove(path)
                os.close(descriptor)


def _remove(path: str) -> None:
    shutil.rmtree(path, ignore_errors=True)  # Ignores files, too.
    with contextlib.suppress(OSError):
        os.unlink(path)


def raise_with_name(error: Any, temporary: str, path: str) -> NoReturn:
    """Raises an error about a temporary file again, with the path that the user passed."""
    if hasattr(error, "node_def"):  # An error of TensorFlow.
        message = error.message.replace(temporary, path)
        raise type(error)(error.node_def, error.op, message) from None
    if not isinstance(error, OSError):
        raise error
    # Errors of copying name both files; ENOSPC names none.
    names = [str(name) for name in (error.filename, error.filename2) if name] or [temporary]
    for name in names:
        if error.errno and temporary in name:
            raise OSError(error.errno, error.strerror, name.replace(temporary, path)) from None
    raise error


def is_stream(path: str) -> bool:
    """Whether a path is a pipe, a terminal or another device, or one that the process has open."""
    # Standard output may be a regular file, which other processes have open, too.
    if os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True
    is_file_or_folder = os.path.isfile(path) or os.path.isdir(path)
    return os.path.exists(path) and not is_file_or_folder


def is_local(directory: str) -> bool:
    """Whether a directory is on a file system of this machine, whose kernel knows all its locks."""
    file_systems = _mounted_file_systems()
    path = pathlib.Path(os.path.realpath(directory))
    for folder in (path, *path.parents):
        if str(folder) in file_systems:
            return file_systems[str(folder)] in _LOCAL_FILE_SYSTEMS
    return False


def _mounted_file_systems() -> dict[str, str]:
    """Returns {mount point: type of its file system}; a later mount hides an earlier one."""
    file_systems = {}
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/self/mountinfo").read_text("utf-8", "replace")
        for line in text.splitlines():
            mount, _, source = line.partition(" - ")
            mount_point = mount.split()[4].replace("\\040", " ")
            file_systems[mount_point] = source.split()[0]
    return file_systems
