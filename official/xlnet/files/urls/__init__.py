"""URLs in the place of paths, such as `s3://bucket/name`, and the modules that handle them.

The core works on local paths. A URL is passed to the file system that is registered for its
scheme; where code needs a path on a disk, registered functions make local copies of URLs. Their
modules are imported when a URL is first used.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from official.xlnet.errors import ConfigError
from official.xlnet.files.registry import Registry

if TYPE_CHECKING:
    from official.xlnet.files.urls.file_systems import FileSystem

_T = TypeVar("_T")

# Subclasses of `file_systems.FileSystem` by scheme, and one for the schemes that are not listed.
FILE_SYSTEMS = Registry[Any]("scheme of a URL")
OTHER_SCHEMES = "*"
# `local_paths`, `local_copy` and `with_urls` for URLs; see the functions of these names below.
LOCAL_COPIES = Registry[Any]("local copies of URLs")

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
_URL_IN_TEXT = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^,\"]+")  # In a list, or after NAME=.
# Uses of paths whose URLs become local paths for a call, see `arguments.PathRule`.
COPIED_USES = ("read", "write", "write_directory", "resume")


def register_file_system(scheme: str) -> Callable[[type[FileSystem]], type[FileSystem]]:
    """Decorator that registers a subclass of `FileSystem`.

    Args:
      scheme: beginning of its URLs before `://`, in lower case.

    Raises:
      ConfigError: a file system is already registered for the scheme.

    Example:
      >>> @register_file_system("shelf")
      ... class Shelf(FileSystem): ...
    """
    return FILE_SYSTEMS.register(scheme)


def is_remote(path: str) -> bool:
    """Whether a path is a URL.

    Example:
      >>> is_remote("gs://bucket/text.txt"), is_remote("text.txt")
      (True, False)
    """
    return _URL.match(path) is not None


def file_system_of(url: str) -> FileSystem:
    """Returns the file system of a URL.

    Raises:
      ConfigError: no file system is registered for its scheme.
    """
    scheme = url.partition("://")[0].lower()
    for name in (scheme, OTHER_SCHEMES):
        if FILE_SYSTEMS.is_known(name):
            return FILE_SYSTEMS[name]()
    raise _unsupported(url)


def urls_in(value: Any) -> list[str]:
    """Returns the URLs in an argument: a text, or texts in lists and in keys of dictionaries."""
    if isinstance(value, list | dict):
        return [url for item in value for url in urls_in(item)]
    return _URL_IN_TEXT.findall(value) if isinstance(value, str) else []


def replace_urls(text: str, replacement: Callable[[str], str]) -> str:
    """Returns a text in which each URL is replaced by `replacement(url)`."""
    return _URL_IN_TEXT.sub(lambda match: replacement(match[0]), text)


@contextlib.contextmanager
def local_paths(arguments: dict[str, Any], uses: Mapping[str, str]) -> Iterator[Callable[[_T], _T]]:
    """Context manager that puts local paths in place of the URLs among the arguments of a call.

    Inputs are copied before the block; outputs are uploaded while it runs and at its end. Without
    URLs, nothing is done.

    Args:
      arguments: {name: value}, changed in place.
      uses: {name of an argument with paths, also in lists: its use}, see `PathRule`.

    Yields:
      A function that puts URLs in place of local paths in the result of the call.

    Raises:
      ConfigError: there are URLs, and nothing is registered that copies them.
    """
    copied = [arguments[name] for name, use in uses.items() if use in COPIED_USES]
    urls = urls_in(copied)
    if not urls:
        yield _unchanged
        return
    with _for_urls("local_paths", urls)(arguments, uses) as restore_urls:
        yield restore_urls


@contextlib.contextmanager
def local_copy(path: str) -> Iterator[str]:
    """Context manager that yields a local path to a file or directory, copied if it is a URL.

    Args:
      path: a path or URL.

    Raises:
      ConfigError: it is a URL, and nothing is registered that copies it.

    Example:
      >>> with local_copy("gs://bucket/model") as model_dir:
      ...     encoder = load_encoder(model_dir)
    """
    if not is_remote(path):
        yield path
        return
    with _for_urls("local_copy", [path])(path) as local_path:
        yield local_path


def with_urls(value: _T) -> _T:
    """Returns a message or result with URLs in place of the paths of their local copies.

    Args:
      value: a text, or a dictionary with texts as values.
    """
    if "with_urls" not in LOCAL_COPIES:  # Not imported: this process has copied no URL.
        return value
    return LOCAL_COPIES["with_urls"](value)


def _for_urls(name: str, urls: Sequence[str]) -> Callable[..., Any]:
    if not LOCAL_COPIES.is_known(name):
        raise _unsupported(urls[0])
    return LOCAL_COPIES[name]


def _unsupported(url: str) -> ConfigError:
    scheme = url.partition("://")[0]
    return ConfigError(f"{url}: expected a local path, got a URL; nothing here reads {scheme}://")


def _unchanged(result: _T) -> _T:
    return result
