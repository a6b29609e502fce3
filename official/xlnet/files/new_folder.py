"""Directories, and files that belong together, that appear whole or not at all."""

from __future__ import annotations

import contextlib
import filecmp
import os
from collections.abc import Iterator

from official.xlnet.errors import require_data
from official.xlnet.files.atomic import temporary_path


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Context manager that creates a directory atomically.

    Yields a temporary directory, which is renamed to `path` if the block succeeds, and removed
    otherwise. If `path` is an empty directory, which may be a mount point, the files are moved into
    it, in the order in which they were written. If it has the same content already, nothing is
    written.

    Args:
      path: the directory to create.

    Raises:
      DataError: `path` exists and is neither an empty directory nor one with the same content.
      OSError: a file cannot be written; the error names its path in `path`.
    """
    path = os.path.realpath(path)
    exists = os.path.isdir(path)
    parent = path if exists else os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    with temporary_path(parent, path, is_folder=True) as temporary:
        content = {*os.listdir(parent)} - {os.path.basename(temporary), "lost+found"}
        is_file = not exists and os.path.exists(path)
        require_data(not is_file, f"{path!r}", "a new or an empty folder", "a file")
        yield temporary
        if exists and content:
            is_same = content == {*os.listdir(temporary)} and _has_same_files(path, temporary)
            expected = "a new or an empty folder, or one with the same content"
            require_data(is_same, f"{path!r}", expected, "one with other files in it")
        elif exists:
            entries = sorted(os.scandir(temporary), key=lambda entry: entry.stat().st_mtime_ns)
            for entry in entries:
                os.rename(entry.path, os.path.join(path, entry.name))
        else:
            os.rename(temporary, path)


@contextlib.contextmanager
def files_together(directory: str, last: str) -> Iterator[str]:
    """Context manager that writes files that belong together to a directory, which has others, too.

    Yields a temporary directory, whose files replace those of `directory` if the block succeeds.
    The file `last`, without which nothing reads the others, is removed before and moved at the end:
    a kill leaves none, rather than files that do not fit together.

    Args:
      directory: the directory; made if it does not exist.
      last: name of the file that is moved at the end.

    Raises:
      OSError: a file cannot be written; the error names its path in `directory`.
    """
    os.makedirs(directory, exist_ok=True)
    with temporary_path(directory, directory, is_folder=True) as temporary:
        yield temporary
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(directory, last))
        for name in sorted(os.listdir(temporary), key=last.__eq__):
            os.replace(os.path.join(temporary, name), os.path.join(directory, name))


def _has_same_files(path: str, folder: str) -> bool:
    """Whether a directory has the files of a folder, with the same content."""
    relative_paths = []
    for directory, _, names in os.walk(folder):
        relative_paths += [os.path.relpath(os.path.join(directory, name), folder) for name in names]
    _, different, missing = filecmp.cmpfiles(folder, path, relative_paths, shallow=False)
    return not different and not missing
