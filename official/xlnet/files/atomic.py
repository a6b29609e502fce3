"""Files and directories that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import filecmp
import os
import pathlib
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from official.xlnet.errors import require_data
from official.xlnet.files.urls import file_system_of, is_remote

_TEMPORARY = re.compile(r".*\.[0-9a-f]{32}\.tmp")
# File systems of this machine, whose kernel knows their locks.
_LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}


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
    with _temporary(temporary_dir or os.path.dirname(target), path) as temporary:
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
def new_folder(path: str) -> Iterator[str]:
    """Context manager that creates a directory atomically.

    Yields a temporary directory, which is renamed to `path` if the block succeeds, and removed
    otherwise. Into an empty directory that is there, which may be a mount point, its content is
    moved, the last file last. A directory that has the same content already stays as it is.

    Args:
      path: the directory to create.

    Raises:
      DataError: `path` exists and is neither an empty directory nor one with the same content.
      OSError: a file cannot be written; the error names it as it would be called in `path`.
    """
    path = os.path.realpath(path)
    is_there = os.path.isdir(path)
    parent = path if is_there else os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    with _temporary(parent, path, is_folder=True) as temporary:
        content = {*os.listdir(parent)} - {os.path.basename(temporary), "lost+found"}
        is_new = is_there or not os.path.exists(path)
        require_data(is_new, f"{path!r}", "a new or an empty folder", "a file")
        yield temporary
        if content and is_there:
            is_same = content == {*os.listdir(temporary)} and _has_files(path, temporary)
            expected = "a new or an empty folder, or one with the same content"
            require_data(is_same, f"{path!r}", expected, "one with other files in it")
        elif is_there:
            for entry in sorted(os.scandir(temporary), key=lambda entry: entry.stat().st_mtime_ns):
                os.rename(entry.path, os.path.join(path, entry.name))
        else:
            os.rename(temporary, path)


def _has_files(path: str, folder: str) -> bool:
    """Whether a directory has the files of a folder, with the same bytes."""
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    names = [os.path.relpath(file, folder) for file in files]
    return not any(filecmp.cmpfiles(folder, path, names, shallow=False)[1:])


@contextlib.contextmanager
def _temporary(folder: str, path: str, is_folder: bool = False) -> Iterator[str]:
    """Creates a file or folder, locked for the block; removes it and those of killed processes."""
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
        descriptor = os.open(path, os.O_RDONLY | (0 if is_folder else os.O_CREAT), 0o666)
        if lock(descriptor) and os.path.exists(path):  # Another process had not removed it before.
            return descriptor
        os.close(descriptor)


def _move(temporary: str, path: str) -> None:
    """Renames a file; a mounted file, which cannot be replaced, is overwritten."""
    try:
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV):
            raise
        shutil.copyfile(temporary, path)
        os.unlink(temporary)


def lock(descriptor: int) -> bool:
    """Locks an open file until it is closed; False if somebody else holds its lock."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # Others: of a file system without locks, where nothing is removed.
        return not isinstance(error, BlockingIOError)
    return True


def remove_abandoned(folder: str, pattern: re.Pattern) -> None:
    """Removes files and folders that killed processes left, whose locks nobody holds.

    Args:
      folder: their folder. If processes elsewhere may write there, nothing is removed.
      pattern: pattern of their names.
    """
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(folder)):
            if is_local(folder):
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
    """Raises an error of a temporary file again, with the name that the user gave."""
    if hasattr(error, "node_def"):  # An error of TensorFlow.
        message = error.message.replace(temporary, path)
        raise type(error)(error.node_def, error.op, message) from None
    if not isinstance(error, OSError):
        raise error
    # ENOSPC has no file name; copying names both files.
    names = [str(name) for name in (error.filename, error.filename2) if name] or [temporary]
    for name in filter(lambda name: error.errno and temporary in name, names):
        raise OSError(error.errno, error.strerror, name.replace(temporary, path)) from None
    raise error


def is_stream(path: str) -> bool:
    """Whether a path is a pipe, a terminal or another device, or one that the process has open."""
    # Even where standard output is a file: others hold it open.
    is_open = os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/"))
    is_plain = os.path.isfile(path) or os.path.isdir(path)
    return is_open or (os.path.exists(path) and not is_plain)


def is_local(directory: str) -> bool:
    """Whether the processes of this machine see each other's kernel locks in a directory."""
    kinds = {}  # {mount point: file system}; a later mount hides an earlier one.
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
            kinds[line.split()[4].replace("\\040", " ")] = line.partition(" - ")[2].split()[0]
    path = pathlib.Path(os.path.realpath(directory))
    return next((kinds[str(x)] for x in (path, *path.parents) if str(x) in kinds), "") in _LOCAL
