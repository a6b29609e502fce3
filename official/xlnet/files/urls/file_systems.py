"""File systems of URLs, for packages that bring one."""

from __future__ import annotations

import abc
import errno
import os
from collections.abc import Sequence
from typing import Any

from official.xlnet.files.urls.file_entry import FileEntry


class FileSystem(abc.ABC):
    """Files of a scheme of URLs: base class for `register_file_system`.

    Methods are called with whole URLs. `FileNotFoundError` says that a file or directory does not
    exist. A file system without the methods that write is read-only.

    Attributes:
      uploads_at_end: whether an output directory is uploaded once, when the command has written it,
        by `upload_all`; otherwise file by file while the command writes. Directories that a run
        goes on with need the latter.
    """

    uploads_at_end = False

    @abc.abstractmethod
    def file_type(self, url: str) -> str | None:
        """Returns `file` or `directory`; None if there is neither.

        An object store has a directory if it has a file in it.
        """

    @abc.abstractmethod
    def open(self, url: str, buffering: int = -1) -> Any:
        """Opens a file for reading in binary mode; `buffering` is that of Python's `open`."""

    @abc.abstractmethod
    def version(self, url: str) -> int | str:
        """Returns a version of a file, which changes whenever the file is written."""

    @abc.abstractmethod
    def names(self, directory: str) -> list[str]:
        """Returns the names of the files and directories in a directory."""

    @abc.abstractmethod
    def tree(self, directory: str) -> dict[str, int]:
        """Returns {path relative to the directory: size in bytes} of all files below it."""

    @abc.abstractmethod
    def glob(self, pattern: str) -> list[str]:
        """Returns the URLs that match a pattern; `**` matches directories recursively."""

    def find(self, pattern: str) -> list[FileEntry]:
        """Returns the file of a URL, or else the files that match it as a pattern."""
        is_name = self.file_type(pattern) == "file"
        urls = [pattern] if is_name else self.glob(pattern)
        return [
            FileEntry(url, self.size(url), str(self.version(url)))
            for url in urls
            if self.file_type(url) == "file"
        ]

    def open_entry(self, entry: FileEntry, buffering: int = -1) -> Any:
        """Opens a file as it was found by `find`; see `open`."""
        return self.open(entry.path, buffering)

    def kept_copy(self, url: str) -> str | None:
        """Returns the local path of the copy of a file or directory that this file system keeps.

        None if it keeps no copies; code that needs a local path makes one.
        """
        return None

    def remove(self, url: str) -> None:
        """Removes a file."""
        raise _read_only(url)

    def remove_tree(self, directory: str) -> None:
        """Removes a directory with all that is in it."""
        raise _read_only(directory)

    def upload(self, local: str, url: str) -> None:
        """Copies a local file to a URL, where it appears whole; its directory is made."""
        raise _read_only(url)

    def upload_all(self, directory: str, names: Sequence[str], url: str) -> None:
        """Copies files of a local directory to a remote one, at once.

        Args:
          directory: the local directory.
          names: paths of the files in it.
          url: the remote directory.
        """
        raise _read_only(url)

    def create(self, url: str, content: bytes) -> None:
        """Writes a file that does not exist yet.

        Raises:
          FileExistsError: it exists.
        """
        raise _read_only(url)

    def size(self, url: str) -> int:
        """Returns the size of a file in bytes."""
        with self.open(url) as file:
            return file.seek(0, 2)

    def read_bytes(self, url: str) -> bytes:
        """Returns the content of a file: one version of it, if it is replaced meanwhile."""
        with self.open(url) as file:
            return file.read()

    def require_writable(self, url: str) -> None:  # noqa: B027  Optional.
        """Raises an `OSError` if it is known in advance that a file could not be written."""

    def is_shared(self, url: str) -> bool:
        """Whether other processes of this machine can read a file that this one has written."""
        return True

    def fail_at_once(self) -> None:  # noqa: B027  Optional.
        """Turns repeated attempts off, for the calls of this thread."""


def _read_only(url: str) -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS), url)
