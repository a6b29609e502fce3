"""Repositories of the Hugging Face hub: files, downloads to the cache, commits.

An error of the hub is one sentence. A process reads one version of a repository.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import logging
import os
import re
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from official.xlnet.errors import ConfigError, DataError, require_config, require_extra
from official.xlnet.runtime.progress import elapsed_time

_URL = re.compile(r"hf://(?:(models|datasets)/)?([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.*))?", re.I)
_FORM = "hf://OWNER/NAME, as in hf://xlnet/xlnet-base-cased, or hf://datasets/OWNER/NAME"
_TOKEN = "set HF_TOKEN, or call `hf auth login`"
_SILENT_SECONDS = 2.0


@dataclasses.dataclass(frozen=True)
class Repository:
    """A model or data set of the hub at a revision.

    Attributes:
      kind: `model` or `dataset`.
      name: `OWNER/NAME`.
      revision: a branch, tag or commit; None for the main branch.
    """

    kind: str
    name: str
    revision: str | None

    @property
    def url(self) -> str:
        """Its URL."""
        folder = "datasets/" if self.kind == "dataset" else ""
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf://{folder}{self.name}{revision}"


def parse(url: str) -> tuple[Repository, str]:
    """Returns the repository of a URL, and the path in it, which is empty for all of it.

    Raises:
      ConfigError: the URL has another form.

    Example:
      >>> parse("hf://xlnet/xlnet-base-cased@main/config.json")
      (Repository(kind='model', name='xlnet/xlnet-base-cased', revision='main'), 'config.json')
    """
    match = _URL.fullmatch(url)
    require_config(match is not None, url, _FORM, "another form")
    assert match is not None
    folder, name, revision, path = match.groups()
    kind = "dataset" if (folder or "").lower() == "datasets" else "model"
    return Repository(kind, name, unquote(revision) if revision else None), (path or "").strip("/")


class NoRepositoryError(DataError):
    """Raised if the hub has no such repository, or shows it to others only."""


@functools.cache
def files_of(repository: Repository) -> dict[str, int]:
    """Returns {path: size in bytes} of the files of a repository, or of those that are cached."""
    library = _library(repository.url)
    with _sentences(repository):
        try:
            info = library.HfApi().repo_info(
                repository.name,
                repo_type=repository.kind,
                revision=repository.revision,
                files_metadata=True,
            )
            return {file.rfilename: file.size or 0 for file in info.siblings or ()}
        except (library.errors.HTTPError, OSError) as error:
            if isinstance(error, _answers(library)):
                raise
            files = _cached_files(library, repository)
            if not files:
                raise
            return files


def _cached_files(library: Any, repository: Repository) -> dict[str, int]:
    """Returns {path: size in bytes} of the files of a repository in the cache."""
    owner_and_name = repository.name.replace("/", "--")
    folder = os.path.join(library.constants.HF_HUB_CACHE, f"{repository.kind}s--{owner_and_name}")
    commit = repository.revision or library.constants.DEFAULT_REVISION
    with contextlib.suppress(OSError), open(os.path.join(folder, "refs", commit)) as file:
        commit = file.read()
    snapshot = os.path.join(folder, "snapshots", commit)
    sizes = {}
    for place, _, names in os.walk(snapshot):
        for name in names:
            path = os.path.join(place, name)
            sizes[os.path.relpath(path, snapshot)] = os.path.getsize(path)
    return sizes


@functools.cache
def download(repository: Repository, paths: tuple[str, ...]) -> str:
    """Downloads files that are not in the cache; returns the cached directory of the repository."""
    library = _library(repository.url)
    with _sentences(repository), _progress(repository):
        return library.snapshot_download(
            repository.name,
            repo_type=repository.kind,
            revision=repository.revision,
            allow_patterns=[glob.escape(path) for path in paths],
            tqdm_class=None if _is_terminal() else _hidden_bar(library),
        )


def commit(repository: Repository, files: dict[str, str]) -> None:
    """Uploads {path in the repository: local path} in one commit."""
    library = _library(repository.url)
    files_of.cache_clear()
    download.cache_clear()
    with _sentences(repository), _progress(repository):
        api = library.HfApi()
        api.create_repo(repository.name, repo_type=repository.kind, private=True, exist_ok=True)
        api.create_commit(
            repository.name,
            [library.CommitOperationAdd(path, local) for path, local in files.items()],
            repo_type=repository.kind,
            revision=repository.revision,
            commit_message="Upload by xlnet",
        )


def require_token(url: str) -> None:
    """Raises `ConfigError` if there is no token of the hub."""
    got = f"none: {_TOKEN}"
    require_config(_library(url).get_token() is not None, url, "a token to write with", got)


def _library(url: str) -> Any:
    require_extra("huggingface_hub", "hub", url)
    import huggingface_hub
    import huggingface_hub.constants
    import huggingface_hub.errors
    import huggingface_hub.utils

    return huggingface_hub


def _answers(library: Any) -> tuple[type[Exception], ...]:
    """Errors that are an answer about a repository; others mean that the hub gave none."""
    return library.errors.RepositoryNotFoundError, library.errors.RevisionNotFoundError


@contextlib.contextmanager
def _sentences(repository: Repository) -> Iterator[None]:
    """Raises one sentence for errors of the hub, whose warnings are hidden meanwhile."""
    library = _library(repository.url)
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    except library.errors.HFValidationError:
        raise ConfigError(f"{repository.url}: expected {_FORM}, got another form") from None
    except (library.errors.HTTPError, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # Of the local disk.
        raise _error(library, repository, error) from error
    finally:
        logger.setLevel(level)


def _error(library: Any, repository: Repository, error: Exception) -> Exception:
    """Returns the error of a user for an error of the hub."""
    url, errors, endpoint = repository.url, library.errors, library.constants.ENDPOINT
    what = "data set" if repository.kind == "dataset" else "model"
    if isinstance(error, errors.GatedRepoError):
        folder = "datasets/" if repository.kind == "dataset" else ""
        page = f"{endpoint}/{folder}{repository.name}"
        return NoRepositoryError(
            f"{url}: expected access to this {what}, got none: accept its terms at {page}, and "
            f"{_TOKEN}"
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    token = library.get_token()
    is_hidden = status == 401 and token is None  # Without a token, the hub does not say which.
    if is_hidden or isinstance(error, errors.RepositoryNotFoundError):
        reader = "your token" if token else f"everybody; for a private one, {_TOKEN}"
        return NoRepositoryError(
            f"{url}: expected a {what} of {endpoint}, got none of this name that is open to "
            f"{reader}"
        )
    if isinstance(error, errors.RevisionNotFoundError):
        revision = repository.revision
        return DataError(f"{url}: expected a branch, tag or commit after @, got {revision!r}")
    if status in (401, 403):
        return DataError(
            f"{url}: expected a token that may do this, got the answer {status} of {endpoint}: "
            f"{_TOKEN}"
        )
    if status is not None and not isinstance(error, FileNotFoundError):
        return DataError(f"{url}: expected an answer of {endpoint}, got the status {status}")
    if library.constants.HF_HUB_OFFLINE:
        why = "HF_HUB_OFFLINE is set"
    else:
        why = f"{endpoint} could not be reached"
    cache = library.constants.HF_HUB_CACHE
    return DataError(
        f"{url}: {why}, and not all of it is in the cache {cache}: expected a connection, or a "
        "folder with the files in the place of the URL"
    )


def _progress(repository: Repository) -> contextlib.AbstractContextManager[None]:
    """Lines about a transfer that takes time; on a terminal, huggingface_hub has bars."""
    if _is_terminal():
        return contextlib.nullcontext()
    return elapsed_time(f"{repository.url}: transferring files", _SILENT_SECONDS)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _hidden_bar(library: Any) -> type:
    """A class of bars that are not shown."""

    class HiddenBar(library.utils.tqdm):
        def __init__(self, *args: Any, **options: Any):
            super().__init__(*args, **{**options, "disable": True})

    return HiddenBar
