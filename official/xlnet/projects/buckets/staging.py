"""Local copies of URLs for code that needs a path on a disk.

TensorFlow, memory maps and appended logs need local files. For the URLs among the arguments of a
call, inputs are copied before it starts; outputs are uploaded while it runs and when it ends.

The local copy of `s3://bucket/a/b` is `ROOT/s3/bucket/a/b`, so that paths in messages and results
can be turned back into URLs.
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
from official.xlnet.files.arguments import weighted
from official.xlnet.files.json_files import map_values
from official.xlnet.files.locks import only_writer
from official.xlnet.files.urls import (
    COPIED_USES,
    LOCAL_COPIES,
    file_system_of,
    replace_urls,
    urls_in,
)
from official.xlnet.projects.buckets import transfers
from official.xlnet.projects.buckets.mirror import (
    Mirror,
    NotUploadedError,
    is_mirrored,
    upload_failed,
)

_PREFIX = "xlnet-stage-"

# A model directory has this file. Commands that read a model need neither its logs, nor the state
# of the run that made it, nor checkpoints before the last two (one of them may be damaged).
_MODEL_FILE = "config.yaml"
_RUN_FOLDERS = ("logs/", "run/", "runs/")
_CHECKPOINT = re.compile(r"ckpt-(\d+)\.")
_NUM_CHECKPOINTS = 2


@LOCAL_COPIES.register("local_paths")
@contextlib.contextmanager
def local_paths(arguments: dict[str, Any], uses: Mapping[str, str]) -> Iterator[Callable]:
    """Puts local paths in place of URLs; see `files.urls.local_paths`."""

    def values(*selected_uses: str) -> list[Any]:
        return [arguments[name] for name, use in uses.items() if use in selected_uses]

    run_urls = urls_in(values("resume"))
    _require_resumable(run_urls)
    output_urls = urls_in(values("write"))
    _require_one_machine(run_urls, arguments.get("strategy"))
    with _new_stage() as stage, contextlib.ExitStack() as stack:
        for url in urls_in(values("write_directory")):
            stage.enter_mirror(stack, url, with_content=False)
        for url in run_urls:
            stage.enter_mirror(stack, url, with_content=True)
        for url in urls_in(values("read")):
            stage.fetch(url)
        for url in output_urls:
            file_system_of(url).require_writable(url)  # Before the work.
            os.makedirs(os.path.dirname(stage.path_of(url)), exist_ok=True)
        for name, use in uses.items():
            if use in COPIED_USES:
                arguments[name] = stage.localized(arguments[name])
        yield with_urls
        for url in output_urls:
            stage.upload(url)


def _require_one_machine(run_urls: Sequence[str], strategy: Any) -> None:
    """Raises `ConfigError` if several workers would write a run to a bucket."""
    require_config(
        not (run_urls and strategy == "multi_worker"),
        "strategy=multi_worker",
        "a directory that all workers mount",
        f"{', '.join(run_urls)}; their inputs may be in a bucket",
    )


def _require_resumable(run_urls: Sequence[str]) -> None:
    """Raises `ConfigError` if a run would be written where directories are uploaded at the end."""
    for url in run_urls:
        require_config(
            not file_system_of(url).uploads_at_end,
            url,
            "a local directory or a bucket for a run, which is saved while it trains",
            f"a model's place; copy the trained model there by xlnet convert --output={url}",
        )


@LOCAL_COPIES.register("local_copy")
@contextlib.contextmanager
def local_copy(url: str) -> Iterator[str]:
    """Yields a local copy of a remote file or directory; see `files.urls.local_copy`."""
    with _new_stage() as stage:
        stage.fetch(url)
        yield stage.path_of(url)


@LOCAL_COPIES.register("with_urls")
def with_urls(value: Any) -> Any:
    """Puts URLs in place of the paths of their local copies; see `files.urls.with_urls`."""
    if isinstance(value, dict):
        return {key: with_urls(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    stages = os.path.join(os.path.realpath(tempfile.gettempdir()), _PREFIX)
    local_path = rf"{re.escape(stages)}\w+/([a-zA-Z][a-zA-Z0-9+.-]*)/"
    return re.sub(local_path, r"\1://", value)


@dataclasses.dataclass
class _Stage:
    """A local directory with copies of URLs.

    Attributes:
      root: the directory.
    """

    root: str

    def path_of(self, url: str) -> str:
        """Returns the local path of a URL."""
        scheme, _, name = url.partition("://")
        return os.path.normpath(os.path.join(self.root, scheme, name))

    def localized(self, value: Any) -> Any:
        """Returns the value of an argument with local paths in place of URLs."""

        def replace(item: Any) -> Any:
            return replace_urls(item, self.path_of) if isinstance(item, str) else item

        return map_values(value, replace)

    def fetch(self, url: str) -> None:
        """Copies a file or directory, if it exists, to its local path.

        Files that the file system keeps a copy of are links.
        """
        url, _ = weighted(url)
        path = self.path_of(url)
        kept_copy = file_system_of(url).kept_copy(url)
        if kept_copy is not None:
            _link_files(kept_copy, path)
        elif file_system.is_file(url):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            transfers.download(url, path)
        elif file_system.is_dir(url):
            names = [name for name in transfers.tree(url) if is_mirrored(name)]
            if _MODEL_FILE in names:
                names = _names_for_reading(names)
            transfers.download_all(url, path, names)

    def enter_mirror(self, stack: contextlib.ExitStack, url: str, with_content: bool) -> None:
        """Locks a remote directory and mirrors its local copy, until a stack is closed."""
        if file_system_of(url).uploads_at_end:
            file_system_of(url).require_writable(url)  # Before the work.
        else:
            stack.enter_context(only_writer(url))
        stack.enter_context(Mirror(url, self.path_of(url), with_content))

    def upload(self, url: str) -> None:
        """Uploads an output file.

        Raises:
          NotUploadedError: the upload failed.
        """
        path = self.path_of(url)
        try:
            transfers.upload(path, url)
        except Exception as error:
            raise upload_failed(url, error, path) from error


def _link_files(source: str, target: str) -> None:
    """Puts links to a file, or to all files of a directory, at a path."""
    sources = [source]
    if os.path.isdir(source):
        folders = [(folder, names) for folder, _, names in os.walk(source)]
        sources = [os.path.join(folder, name) for folder, names in folders for name in names]
    for file in sources:
        link = os.path.normpath(os.path.join(target, os.path.relpath(file, source)))
        os.makedirs(os.path.dirname(link), exist_ok=True)
        if not os.path.lexists(link):  # Another argument may have named it.
            os.symlink(file, link)


def _names_for_reading(names: Sequence[str]) -> list[str]:
    """Returns the files of a model directory that are needed to read the model."""
    steps = {}
    for name in names:
        if match := _CHECKPOINT.match(name):
            steps[name] = int(match[1])
    recorded_steps = sorted(step for name, step in steps.items() if name.endswith(".json"))
    # A model that was not written by a run has no records; all of its checkpoints are read.
    steps_to_read = recorded_steps[-_NUM_CHECKPOINTS:] or list(steps.values())
    selected = []
    for name in names:
        is_old = name in steps and steps[name] not in steps_to_read
        if not is_old and not name.startswith(_RUN_FOLDERS):
            selected.append(name)
    return selected


@contextlib.contextmanager
def _new_stage() -> Iterator[_Stage]:
    """A stage in `TMPDIR`, removed at the end unless it holds files that were not uploaded."""
    stage = _Stage(os.path.realpath(tempfile.mkdtemp(prefix=_PREFIX)))
    is_kept = False
    try:
        yield stage
    except BaseException as error:
        is_kept = isinstance(error, NotUploadedError)
        is_kept = is_kept or isinstance(error.__cause__, NotUploadedError)
        raise
    finally:
        if not is_kept:
            shutil.rmtree(stage.root, ignore_errors=True)
