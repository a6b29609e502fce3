"""The file system of `hf://OWNER/NAME[@REVISION][/PATH]`: the Hugging Face hub.

What is read is downloaded once, by huggingface_hub, to the cache that transformers uses, in
`HF_HOME`. Without a network, or with `HF_HUB_OFFLINE=1`, the cache alone is read. What is written
is one commit, once a command has written all of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files.urls import register_file_system
from official.xlnet.files.urls.file_systems import FileSystem
from official.xlnet.projects.buckets import hub
from official.xlnet.projects.buckets.hub import NoRepositoryError, parse

# Weights for other libraries, which are not downloaded with a model; nor are pickles of weights
# that the same folder has as safetensors.
_OTHER_WEIGHTS: tuple[str, ...] = (
    ".h5",
    ".ot",
    ".msgpack",
    ".onnx",
    ".gguf",
    ".mlmodel",
    ".tflite",
    ".pt",
    ".pth",
)
_PICKLES, _SAFETENSORS = ".bin", ".safetensors"
_SHARD = re.compile(r"-\d+-of-\d+$")
_OF_HUB = (".gitattributes", "README.md")  # Files that a new repository may have.


@register_file_system("hf")
class HubFileSystem(FileSystem):
    """Models and data sets of the Hugging Face hub; see `FileSystem`.

    A process reads one version of a repository.
    """

    uploads_at_end = True

    def file_type(self, url: str) -> str | None:
        """Returns `file` or `directory`; None if the repository has neither."""
        repository, path = parse(url)
        files = hub.files_of(repository)
        if path in files:
            return "file"
        return "directory" if _below(files, path) else None

    def open(self, url: str, buffering: int = -1) -> Any:
        """Opens the cached copy of a file in binary mode."""
        repository, path = parse(url)
        if path not in hub.files_of(repository):
            raise FileNotFoundError(2, os.strerror(2), url)
        return open(os.path.join(hub.download(repository, (path,)), path), "rb", buffering)

    def version(self, url: str) -> str:
        """Returns the checksum of a file, or where it is cached."""
        repository, path = parse(url)
        return os.path.basename(
            os.path.realpath(os.path.join(hub.download(repository, (path,)), path))
        )

    def size(self, url: str) -> int:
        """Returns the size of a file in bytes."""
        repository, path = parse(url)
        return hub.files_of(repository)[path]

    def names(self, directory: str) -> list[str]:
        """Returns the names of the files and directories in a directory."""
        repository, path = parse(directory)
        return sorted({name.partition("/")[0] for name in _below(hub.files_of(repository), path)})

    def tree(self, directory: str) -> dict[str, int]:
        """Returns {path relative to a directory: size in bytes} of all files that were uploaded.

        Empty if there is no such repository, as before the first upload.
        """
        repository, path = parse(directory)
        try:
            files = _below(hub.files_of(repository), path)
        except NoRepositoryError:
            return {}
        return {name: size for name, size in files.items() if name not in _OF_HUB}

    def glob(self, pattern: str) -> list[str]:
        """Returns the URLs that match a pattern; `**` matches directories recursively."""
        from fsspec.utils import glob_translate

        repository, path = parse(pattern)
        # As for local files, `a**` means `a*`.
        parts = [part if part == "**" else re.sub(r"\*+", "*", part) for part in path.split("/")]
        matches = re.compile(glob_translate("/".join(parts))).match
        names = sorted(filter(matches, hub.files_of(repository)))
        return [f"{repository.url}/{name}" for name in names]

    def kept_copy(self, url: str) -> str | None:
        """Returns the path of a file or directory in the cache, to which it is downloaded.

        Of a model's weights, those in one format are downloaded.
        """
        repository, path = parse(url)
        files = hub.files_of(repository)
        if path in files:
            return os.path.join(hub.download(repository, (path,)), path)
        names = _needed(_below(files, path)) if repository.kind == "model" else _below(files, path)
        if not names:
            return None
        paths = tuple(f"{path}/{name}".lstrip("/") for name in names)
        return os.path.normpath(os.path.join(hub.download(repository, paths), path))

    def require_writable(self, url: str) -> None:
        """Raises `ConfigError` if there is no token of the hub."""
        parse(url)
        hub.require_token(url)

    def upload(self, local: str, url: str) -> None:
        """Commits a file; a new repository is private."""
        self.require_writable(url)
        repository, path = parse(url)
        require_config(path != "", url, "the path of a file in a repository", "none")
        hub.commit(repository, {path: local})

    def upload_all(self, directory: str, names: Sequence[str], url: str) -> None:
        """Commits files of a local directory, all at once; a new repository is private."""
        repository, path = parse(url)
        files = {f"{path}/{name}".lstrip("/"): os.path.join(directory, name) for name in names}
        if files:
            hub.commit(repository, files)

    def create(self, url: str, content: bytes) -> None:
        """Raises `ConfigError`: commands that write file by file do not write here."""
        raise ConfigError(
            f"{os.path.dirname(url)}: expected a local directory or a bucket, got a repository of "
            "the hub, to which export and convert write"
        )


def _below(files: dict[str, int], path: str) -> dict[str, int]:
    """Returns {path relative to a directory: size} of the files in it."""
    folder = f"{path}/" if path else ""
    return {name[len(folder) :]: size for name, size in files.items() if name.startswith(folder)}


def _needed(files: dict[str, int]) -> list[str]:
    """Returns the files of a model, or of a folder with several, that are read here."""
    safetensors = {_weights(name) for name in files if name.endswith(_SAFETENSORS)}
    names = []
    for name in files:
        folder, weights = _weights(name)
        is_same = name.endswith(_PICKLES) and {(folder, weights), (folder, "model")} & safetensors
        if not is_same and not name.endswith(_OTHER_WEIGHTS):
            names.append(name)
    return names


def _weights(path: str) -> tuple[str, str]:
    """The folder of a file, and the name of its weights without format and number of a shard.

    Example:
      >>> _weights("a/pytorch_model-00001-of-00002.bin"), _weights("a/model.safetensors")
      (('a', 'model'), ('a', 'model'))
    """
    folder, file_name = os.path.split(path)
    name = _SHARD.sub("", os.path.splitext(file_name)[0])
    return folder, name.removeprefix("pytorch_")
