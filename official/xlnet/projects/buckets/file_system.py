"""The file system of all schemes that fsspec knows: `s3://`, `gs://`, `https://` and others."""

from __future__ import annotations

import contextlib
import glob
import os
from typing import TYPE_CHECKING, Any

from official.xlnet.files.urls import OTHER_SCHEMES, register_file_system
from official.xlnet.files.urls.file_entry import FileEntry
from official.xlnet.files.urls.file_systems import FileSystem
from official.xlnet.projects.buckets import requests
from official.xlnet.projects.buckets.libraries import library_of
from official.xlnet.projects.buckets.remote_file import open_remote, version_of
from official.xlnet.projects.buckets.versions import of_one_version, version_in

if TYPE_CHECKING:
    import fsspec


@register_file_system(OTHER_SCHEMES)
class RemoteFileSystem(FileSystem):
    """Files of any fsspec file system; see `FileSystem`. Calls that fail are repeated."""

    def file_type(self, url: str) -> str | None:
        """Returns `file` or `directory`; None if there is neither."""
        try:
            return requests.call(url, lambda library, name: library.info(name))["type"]
        except FileNotFoundError:
            return None

    def open(self, url: str, buffering: int = -1) -> Any:
        """Opens a file for reading in binary mode."""
        return open_remote(url, buffering)

    def find(self, pattern: str) -> list[FileEntry]:
        """Returns the file of a URL, or else the files that match it as a pattern, by a listing."""
        try:
            info = requests.call(pattern, lambda library, name: library.info(name))
        except FileNotFoundError:
            info = {"type": None}
        if info["type"] == "file":
            return [self._entry(pattern, info)]
        if not glob.has_magic(pattern):
            return []

        def details(library: fsspec.AbstractFileSystem, name: str) -> dict[str, Any]:
            infos = library.glob(name, detail=True)
            return {library.unstrip_protocol(path): info for path, info in infos.items()}

        infos = requests.call(pattern, details)
        return [self._entry(url, info) for url, info in infos.items() if info["type"] == "file"]

    def _entry(self, url: str, info: dict[str, Any]) -> FileEntry:
        if info.get("size") is None:  # Listings of web servers have none.
            info = requests.call(url, lambda library, name: library.info(name))
        size = info.get("size")
        return FileEntry(url, self.size(url) if size is None else size, version_in(info))

    def open_entry(self, entry: FileEntry, buffering: int = -1) -> Any:
        """Opens a file as it was found; where its version is a condition, without a request."""
        return open_remote(entry.path, buffering, entry)

    def read_bytes(self, url: str) -> bytes:
        """Returns the content of a file: one version of it, if it is replaced meanwhile."""

        def read() -> bytes:
            with open_remote(url, buffering=0) as file:
                return file.read()

        return of_one_version(read)

    def version(self, url: str) -> int | str:
        """Returns a version of a file, which changes whenever it is written."""
        return version_of(url)

    def names(self, directory: str) -> list[str]:
        """Returns the names of the files and directories in a directory."""
        paths = requests.call(directory, lambda library, name: library.ls(name, detail=False))
        names = [os.path.basename(path.rstrip("/")) for path in paths]
        return [name for name in names if name]

    def tree(self, directory: str) -> dict[str, int]:
        """Returns {path relative to the directory: size in bytes} of all files below it."""
        details = requests.call(directory, lambda library, name: library.find(name, detail=True))
        root = library_of(directory)._strip_protocol(directory).rstrip("/") + "/"
        sizes = {path[len(root) :]: info["size"] for path, info in details.items()}
        sizes.pop("", None)  # The directory itself, which some object stores list.
        return sizes

    def glob(self, pattern: str) -> list[str]:
        """Returns the URLs that match a pattern."""

        def matches(library: fsspec.AbstractFileSystem, name: str) -> list[str]:
            return [library.unstrip_protocol(path) for path in library.glob(name)]

        return requests.call(pattern, matches)

    def remove(self, url: str) -> None:
        """Removes a file."""
        requests.call(url, lambda library, name: library.rm_file(name))

    def remove_tree(self, directory: str) -> None:
        """Removes a directory with all that is in it."""
        requests.call(directory, lambda library, name: library.rm(name, recursive=True))

    def upload(self, local: str, url: str) -> None:
        """Copies a local file to a URL; on an object store it appears at once, whole."""

        def put(library: fsspec.AbstractFileSystem, name: str) -> None:
            try:
                library.put_file(local, name)
            except FileNotFoundError:  # Of the directory, on file systems that have directories.
                _require_bucket(library, name)
                library.makedirs(os.path.dirname(name), exist_ok=True)
                library.put_file(local, name)

        requests.call(url, put)

    def create(self, url: str, content: bytes) -> None:
        """Writes a file that does not exist yet; otherwise raises `FileExistsError`."""

        def write(library: fsspec.AbstractFileSystem, name: str) -> None:
            if library.exists(name):
                raise FileExistsError(name)
            library.pipe_file(name, content, mode="create")

        requests.call(url, write)

    def require_writable(self, url: str) -> None:
        """Raises `FileNotFoundError` if the bucket of a URL does not exist; none is ever made."""
        with contextlib.suppress(PermissionError):  # Writing may be allowed all the same.
            requests.call(url, _require_bucket)

    def is_shared(self, url: str) -> bool:
        """Whether other processes can read a file: not those in the memory of this one."""
        return not url.lower().startswith("memory://")

    def fail_at_once(self) -> None:
        """Turns repeated attempts off, for the calls of this thread."""
        requests.fail_at_once()


def _require_bucket(library: fsspec.AbstractFileSystem, name: str) -> None:
    bucket, slash, _ = name.partition("/")
    if not bucket or not slash:  # Paths of file systems without buckets begin with a slash.
        return
    try:
        library.info(bucket)
    except FileNotFoundError:
        raise FileNotFoundError("no such bucket") from None
