"""Paths for code that knows plain local files only: copies of inputs, mirrors of outputs, links.

TensorFlow, memory maps and appended logs need a path on a disk. `on_local_disk` gives a
command local paths for the URLs in its flags: its inputs are copied before it starts; its
outputs are uploaded while it runs and when it ends.

The local copy of `s3://bucket/a/b` is `ROOT/s3/bucket/a/b`, so paths in messages and results can be
turned back into URLs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from absl import flags

from official.xlnet.errors import StoppedError, XLNetError, require_config
from official.xlnet.files import file_system
from official.xlnet.files.arguments import require_apart, weighted
from official.xlnet.files.locks import only_writer
from official.xlnet.files.mirror import Mirror, NotUploadedError, download_all, is_kept

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^,\"]+")  # In a list, or after NAME=.
_PATTERN_CHARACTERS = re.compile(r"[*?\[\]\\{}]")

# A model directory has this file; commands that read a model need neither its logs, nor the state
# of the run that made it, nor checkpoints before the last two (one of them may be damaged).
_MODEL_FILE = "config.yaml"
_OF_A_RUN = ("logs/", "run/", "runs/")
_CHECKPOINT = re.compile(r"ckpt-(\d+)\.")


def on_local_disk(
    flag_values: flags.FlagValues,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    writes_directory: Sequence[str] = (),
    resumes: Sequence[str] = (),
    reads_arguments: bool = False,
) -> Callable[[Callable[..., dict[str, Any]]], Callable[..., dict[str, Any]]]:
    """Decorator of a command that takes URLs in its flags, and runs it with local paths.

    Without URLs the command runs as it is. An output that is one of the inputs is refused.

    Args:
      flag_values: the flags of the command.
      reads: names of flags with files or directories to read, also in lists.
      writes: names of flags with a file to write; it is uploaded if the command succeeds.
      writes_directory: names of flags with a directory to write, whose present files are known to
        the command by name only.
      resumes: names of flags with a directory that the command goes on with; see `Mirror`.
      reads_arguments: whether positional arguments are files or directories to read.

    Example:
      >>> @on_local_disk(FLAGS, reads=["config", "data"], resumes=["model_dir"])
      ... def run():
      ...     return train(FLAGS["config"].value, FLAGS["data"].value, FLAGS["model_dir"].value)
    """

    def decorate(run: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
        @functools.wraps(run)
        def staged(*arguments: str) -> dict[str, Any]:
            names = [*reads, *writes, *writes_directory, *resumes]
            given = {name: flag_values[name].value for name in names}
            inputs = [given[name] for name in reads]
            if reads_arguments:
                inputs += arguments
            for name in (*writes, *writes_directory):
                require_apart(f"--{name}", given[name], inputs)
            if not _urls([*given.values(), *inputs]):
                return run(*arguments)
            _check_workers(flag_values, _urls([given[name] for name in resumes]))
            with _stage() as stage, contextlib.ExitStack() as stack:
                for name in (*writes_directory, *resumes):
                    for url in _urls(given[name]):
                        stack.enter_context(only_writer(url))
                        stack.enter_context(Mirror(url, stage.path_of(url), name in resumes))
                for url in _urls(inputs):
                    stage.fetch(url)
                outputs = _urls([given[name] for name in writes])
                for url in outputs:
                    os.makedirs(os.path.dirname(stage.path_of(url)), exist_ok=True)
                for name, value in given.items():
                    flag_values[name].value = stage.local(value)
                    stack.callback(setattr, flag_values[name], "value", value)
                result = run(*map(stage.local, arguments) if reads_arguments else arguments)
                for url in outputs:
                    file_system.upload(stage.path_of(url), url)
            return stage.named(result)

        return staged

    return decorate


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


def is_plain(path: str) -> bool:
    """Whether a path, as a pattern, matches itself alone."""
    return not _PATTERN_CHARACTERS.search(path)


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
    if is_plain(os.path.abspath(folder)):
        yield folder
        return
    with tempfile.TemporaryDirectory() as directory:
        link = os.path.join(directory, "folder")
        os.symlink(os.path.abspath(folder), link, target_is_directory=True)
        yield link


class _Stage:
    """The local side of URLs.

    Args:
      root: an empty directory.
    """

    def __init__(self, root: str):
        self.root = root
        self._pattern = re.compile(re.escape(root + os.sep) + r"([a-zA-Z][a-zA-Z0-9+.-]*)/")

    def path_of(self, url: str) -> str:
        """The local path of a URL."""
        scheme, _, name = url.partition("://")
        return os.path.normpath(os.path.join(self.root, scheme, name))

    def local(self, value: Any) -> Any:
        """The value of a flag with local paths in place of URLs."""
        if isinstance(value, list):
            return [self.local(item) for item in value]
        return value and _URL.sub(lambda match: self.path_of(match[0]), value)

    def named(self, value: Any) -> Any:
        """A message or a result with URLs in place of local paths."""
        if isinstance(value, str):
            return self._pattern.sub(r"\1://", value)
        if isinstance(value, dict):
            return {key: self.named(item) for key, item in value.items()}
        return value

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


def _check_workers(flag_values: flags.FlagValues, directories: Sequence[str]) -> None:
    """Raises `ConfigError` where several processes would have to see one remote directory."""
    has_workers = "strategy" in flag_values and flag_values["strategy"].value == "multi_worker"
    require_config(
        not (has_workers and directories),
        "--strategy=multi_worker",
        "a directory that all workers mount",
        f"{', '.join(directories)}; their inputs may be in a bucket",
    )


def _urls(value: Any) -> list[str]:
    """The URLs in the value of a flag."""
    if isinstance(value, list):
        return [url for item in value for url in _urls(item)]
    return _URL.findall(value) if value else []


@contextlib.contextmanager
def _stage() -> Iterator[_Stage]:
    """A stage on the local disk (`TMPDIR`), removed at the end unless files are left to upload."""
    stage = _Stage(os.path.realpath(tempfile.mkdtemp(prefix="xlnet-")))
    with contextlib.ExitStack() as at_end:
        at_end.callback(shutil.rmtree, stage.root, ignore_errors=True)
        try:
            yield stage
        except NotUploadedError:
            at_end.pop_all()
            raise
        except (XLNetError, OSError, StoppedError) as error:
            error.args = tuple(map(stage.named, error.args))
            if isinstance(error, OSError):
                error.filename = stage.named(error.filename)
                error.filename2 = stage.named(error.filename2)
            raise
