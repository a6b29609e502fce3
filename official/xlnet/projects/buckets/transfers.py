"""Copies of files between the local disk and a remote file system."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import shutil
from collections.abc import Sequence

from official.xlnet.files.urls import file_system_of
from official.xlnet.projects.buckets.versions import of_one_version

_MAX_DOWNLOADS = 8  # At the same time.
_COPY_BYTES = 8 << 20


def upload(local: str, url: str) -> None:
    """Copies a local file to a URL; on an object store it appears at once, whole."""
    file_system_of(url).upload(local, url)


def upload_all(directory: str, names: Sequence[str], url: str) -> None:
    """Copies files of a local directory to a remote one, at once; see `FileSystem.upload_all`."""
    file_system_of(url).upload_all(directory, names, url)


def download(url: str, local: str) -> None:
    """Copies a remote file to the local disk; a copy of one that is replaced begins again.

    Raises:
      DataError: it was replaced during several copies.
    """

    def copy() -> None:
        with file_system_of(url).open(url) as source, open(local, "wb") as target:
            shutil.copyfileobj(source, target, _COPY_BYTES)

    of_one_version(copy)


def remove(url: str) -> None:
    """Removes a remote file."""
    file_system_of(url).remove(url)


def tree(directory: str) -> dict[str, int]:
    """Returns {path relative to a remote directory: size in bytes} of all files below it."""
    return file_system_of(directory).tree(directory)


def download_all(url: str, path: str, names: Sequence[str], with_content: bool = True) -> None:
    """Copies files of a remote directory to a local one, which is made.

    Args:
      url: the remote directory.
      path: the local directory.
      names: paths of the files in it.
      with_content: whether they are downloaded; otherwise empty files stand for them.
    """
    os.makedirs(path, exist_ok=True)

    def fetch(name: str) -> None:
        local = pathlib.Path(path, name)
        local.parent.mkdir(parents=True, exist_ok=True)
        local.touch()
        if with_content:
            download(f"{url.rstrip('/')}/{name}", str(local))

    with concurrent.futures.ThreadPoolExecutor(_MAX_DOWNLOADS) as pool:
        list(pool.map(fetch, names))
