"""Paths for code that knows plain local files only: copies of inputs, mirrors of outputs, links.

TensorFlow, memory maps and appended logs need a path on a disk. `local_paths` gives a call local
paths for the URLs in its arguments: its inputs are copied before it starts; its outputs are
uploaded while it runs and when it ends.

The local copy of `s3://bucket/a/b` is `ROOT/s3/bucket/a/b`, so paths in messages and results can be
turned back into URLs.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from official.xlnet.errors import require_config
from official.xlnet.files import file_system
from official.xlnet.files.arguments import require_apart, weighted
from official.xlnet.files.json_files import changed
from official.xlnet.files.locks import only_writer
from official.xlnet.files.mirror import (
    Mirror,
    NotUploadedError,
    download_all,
    is_kept,
    upload_failed,
)

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^,\"]+")  # In a list, or after NAME=.
_PREFIX = "xlnet-stage-"
_PATTERN_CHARACTERS = re.compile(r"[*?\[\]\\{}]")

# A model directory has this file; commands that read a model need neither its logs, nor the state
# of the run that made it, nor checkpoints before the last two (one of them may be damaged).
_MODEL_FILE = "config.yaml"
_OF_A_RUN = ("logs/", "run/", "runs/")
_CHECKPOINT = re.compile(r"ckpt-(\d+)\.")


@contextlib.contextmanager
def local_paths(arguments: dict[str, Any], uses: Mapping[str, str]) -> Iterator[Callable]:
    """Context manager that puts local paths in place of the URLs among the arguments of a call.

    Without URLs, nothing is done. An output that is one of the inputs is refused.

    Args:
      arguments: {name: value}, changed in place.
      uses: {name of an argument with paths, also in lists: its use}, see `PathRule`.

    Yields:
      A function that puts URLs in place of local paths in the result of the call.
    """

    def used(*kinds: str) -> dict[str, Any]:
        return {name: arguments[name] for name, use in uses.items() if use in kinds}

    inputs, staged = [*used("read").values()], used("read", "write", "write_directory", "resume")
    for name, output in used("write", "write_directory").items():
        require_apart(name, output, inputs)
    if not _urls([*staged.values()]):
        yield lambda result: result
        return
    runs = _urls([*used("resume").values()])
    require_config(
        not (runs and arguments.get("strategy") == "multi_worker"),
        "strategy=multi_worker",
        "a directory that all workers mount",
        f"{', '.join(runs)}; their inputs may be in a bucket",
    )
    with _stage() as stage, contextlib.ExitStack() as stack:
        for use in ("write_directory", "resume"):
            for url in _urls([*used(use).values()]):
                stack.enter_context(only_writer(url))
                stack.enter_context(Mirror(url, stage.path_of(url), use == "resume"))
        for url in _urls(inputs):
            stage.fetch(url)
        outputs = _urls([*used("write").values()])
        for url in outputs:
            file_system.require_bucket(url)  # Before the work.
            os.makedirs(os.path.dirname(stage.path_of(url)), exist_ok=True)
        arguments |= {name: stage.local(value) for name, value in staged.items()}
        yield with_urls
        for url in outputs:
            try:
                file_system.upload(stage.path_of(url), url)
            except Exception as error:
                raise upload_failed(url, error, stage.path_of(url)) from error


def with_urls(value: Any) -> Any:
    """A message or a result with URLs in place of the local paths that stood for them."""
    if isinstance(value, str):
        stages = os.path.join(os.path.realpath(tempfile.gettempdir()), _PREFIX)
        return re.sub(rf"{re.escape(stages)}\w+/([a-zA-Z][a-zA-Z0-9+.-]*)/", r"\1://", value)
    if isinstance(value, dict):
        return {key: with_urls(item) for key, item in value.items()}
    return value


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Context manager that yields a local path to a file or directory, copied if it is a URL.

    Args:
      path: a path of any kind.

    Example:
      >>> with local_copy("gs://bucket/model") as model_dir:
      ...     encoder = load_encoder(model_dir)
    """
    if not file_system.is_remote(path):
        yield path
        return
    with _stage() as stage:
        stage.fetch(path)
        yield stage.path_of(path)


@contextlib.contextmanager
def plain_folder(folder: str) -> Iterator[str]:
    """Yields a path to the same folder that TensorFlow does not take for a pattern.

    TensorFlow looks for the files of a checkpoint by a pattern that the folder's path is part of; a
    `[` in it then means something else. Where there are such characters, a symbolic link stands
    for the folder.

    Args:
      folder: a path of a folder, which may be made later.

    Example:
      >>> with plain_folder("models/a[1]") as folder:
      ...     tf.train.load_checkpoint(os.path.join(folder, "ckpt-7"))
    """
    if not _PATTERN_CHARACTERS.search(os.path.abspath(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        link = os.path.join(directory, "folder")
        os.symlink(os.path.abspath(folder), link, target_is_directory=True)
        yield link


@dataclasses.dataclass
class _Stage:
    """The local side of URLs.

    Attributes:
      root: an empty directory.
    """

    root: str

    def path_of(self, url: str) -> str:
        """The local path of a URL."""
        scheme, _, name = url.partition("://")
        return os.path.normpath(os.path.join(self.root, scheme, name))

    def local(self, value: Any) -> Any:
        """The value of an argument with local paths in place of URLs."""

        def replace(item: Any) -> Any:
            is_text = isinstance(item, str)
            return _URL.sub(lambda match: self.path_of(match[0]), item) if is_text else item

        return changed(value, replace)

    def fetch(self, url: str) -> None:
        """Copies a file or directory, if there is one, to its local path."""
        url, _ = weighted(url)
        path = self.path_of(url)
        if file_system.is_file(url):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file_system.download(url, path)
        elif file_system.is_dir(url):
            names = [name for name in file_system.tree(url) if is_kept(name)]
            download_all(url, path, _read_of_model(names) if _MODEL_FILE in names else names)


def _read_of_model(names: Sequence[str]) -> list[str]:
    """Returns the files of a model directory that are needed to read the model."""
    steps = {name: int(match[1]) for name in names if (match := _CHECKPOINT.match(name))}
    recorded = sorted(step for name, step in steps.items() if name.endswith(".json"))
    read = recorded[-2:] or steps.values()  # Models that no run wrote have no records.
    return [
        name
        for name in names
        if not name.startswith(_OF_A_RUN) and (name not in steps or steps[name] in read)
    ]


def _urls(value: Any) -> list[str]:
    """The URLs in the value of an argument."""
    if isinstance(value, list | dict):
        return [url for item in value for url in _urls(item)]
    return _URL.findall(value) if isinstance(value, str) else []


@contextlib.contextmanager
def _stage() -> Iterator[_Stage]:
    """A stage on the local disk (`TMPDIR`), removed at the end unless files are left to upload."""
    stage = _Stage(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
    with contextlib.ExitStack() as at_end:
        at_end.callback(shutil.rmtree, stage.root, ignore_errors=True)
        try:
            yield stage
        except BaseException as error:
            if isinstance(error, NotUploadedError) or isinstance(error.__cause__, NotUploadedError):
                at_end.pop_all()
            raise
