"""Versions of remote files, and requests for bytes of one version.

S3, Google Cloud Storage and web servers with entity tags take the version as a condition of a
request: bytes of another version are never returned. Other file systems are asked for the version
again after each request.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from official.xlnet.errors import DataError

if TYPE_CHECKING:
    import fsspec

_T = TypeVar("_T")

MAX_READS = 4  # Of a file that is replaced each time.
# Names of fsspec's information about a file that change when it is written; the first one counts.
_GENERATION, _ENTITY_TAG = "generation", "ETag"
_KEYS = (_GENERATION, _ENTITY_TAG, "etag")
_TIMES = ("mtime", "modified", "last_modified", "Last-Modified", "LastModified", "updated")
_OTHERS = ("created", "Content-MD5", "Digest")
_PRECONDITION_FAILED = 412


class ReplacedError(DataError):
    """Raised while a file is read of which there is another version now.

    Args:
      url: the file.
    """

    def __init__(self, url: str):
        super().__init__(f"{url}: expected one version of the file, got another, written meanwhile")


def of_one_version(read: Callable[[], _T]) -> _T:
    """Returns the result of a function that reads a file, which begins again if it was replaced.

    Args:
      read: opens the file, and reads it to its end.

    Raises:
      DataError: the file was replaced during each of `MAX_READS` calls.
    """
    for _ in range(MAX_READS - 1):
        with contextlib.suppress(ReplacedError):
            return read()
    return read()


def version_in(info: Mapping[str, Any]) -> str:
    """Returns the version of a file, by what a listing or a request says about it.

    Args:
      info: fsspec's information about the file.

    Example:
      >>> version_in({"size": 3, "ETag": '"900150983cd24fb0"'})
      'ETag "900150983cd24fb0"'
    """
    for name in _KEYS:
        if info.get(name):
            return f"{name} {info[name]}"
    for name in (*_TIMES, *_OTHERS):
        if info.get(name):
            return f"{info.get('size')} bytes, {name} {info[name]}"
    return f"{info.get('size')} bytes"


def is_condition(library: fsspec.AbstractFileSystem, version: str) -> bool:
    """Whether a file system returns bytes only of the version that a request names.

    Web servers are not relied on: some ignore conditions.

    Args:
      library: the file system.
      version: version of a file there, see `version_in`.
    """
    name, _, _ = version.partition(" ")
    return name == _GENERATION or (name == _ENTITY_TAG and _is_s3(library))


def read_range(
    library: fsspec.AbstractFileSystem, name: str, start: int, end: int, version: str, url: str
) -> bytes:
    """Returns bytes [start, end) of a version of a file.

    Args:
      library: the file system.
      name: name of the file there.
      start: the first byte.
      end: end of the bytes (exclusive).
      version: the version, see `version_in`; where it is not a condition, bytes of another one may
        be returned.
      url: the file, for messages.

    Raises:
      ReplacedError: there is another version now.
    """
    key, _, value = version.partition(" ")
    if key == _GENERATION:
        return _read_generation(library, name, start, end, value, url)
    if key == _ENTITY_TAG and _is_s3(library):
        return _read_from_s3(library, name, start, end, value, url)
    is_strong = value.startswith('"')  # Weak tags never match.
    if key == _ENTITY_TAG and is_strong and url.startswith(("http://", "https://")):
        return _read_from_web(library, name, start, end, value, url)
    return library.cat_file(name, start=start, end=end)


def _is_s3(library: fsspec.AbstractFileSystem) -> bool:
    return hasattr(library, "call_s3")


def _read_from_s3(
    library: Any, name: str, start: int, end: int, entity_tag: str, url: str
) -> bytes:
    from fsspec.asyn import sync

    bucket, key, _ = library.split_path(name)
    try:
        reply = library.call_s3(
            "get_object",
            library.req_kw,
            Bucket=bucket,
            Key=key,
            Range=f"bytes={start}-{end - 1}",
            IfMatch=entity_tag,
        )
    except OSError as error:
        if _status_of(error.__cause__) == _PRECONDITION_FAILED:
            raise ReplacedError(url) from None
        raise
    body = reply["Body"]
    # A server may ignore the condition.
    is_same = reply.get("ETag", entity_tag) == entity_tag

    async def content() -> bytes:
        try:
            return await body.read() if is_same else b""
        finally:
            body.close()

    data = sync(library.loop, content)
    if not is_same:
        raise ReplacedError(url)
    return data


def _read_generation(
    library: Any, name: str, start: int, end: int, version: str, url: str
) -> bytes:
    try:
        return library.cat_file(name, start=start, end=end, generation=version)
    except FileNotFoundError:  # Of the generation.
        if library.exists(name):
            raise ReplacedError(url) from None
        raise


def _read_from_web(library: Any, name: str, start: int, end: int, version: str, url: str) -> bytes:
    try:
        return library.cat_file(name, start=start, end=end, headers={"If-Match": version})
    except Exception as error:
        if getattr(error, "status", None) == _PRECONDITION_FAILED:
            raise ReplacedError(url) from None
        raise


def _status_of(error: Any) -> int | None:
    """Returns the HTTP status of an error of boto."""
    response = getattr(error, "response", None) or {}
    return response.get("ResponseMetadata", {}).get("HTTPStatusCode")
