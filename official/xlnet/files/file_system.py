"""Files of any file system: local paths, and URLs such as `gs://bucket/name` or `s3://bucket/name`.

A path without `://` is local, and handled by Python alone. Other paths belong to the file system of
their scheme in fsspec, which is imported when such a path is first used. Where TensorFlow or
another library reads a file by its path, `staging` brings it to the local disk.

Calls to a remote file system are repeated with growing pauses when they fail, for
`PATIENCE_SECONDS` in all, unless the failure is an answer (no such file, no permission).
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import glob as local_glob
import io
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from official.xlnet.errors import ConfigError, how_to_install, require_data

if TYPE_CHECKING:
    import fsspec

PATIENCE_SECONDS = 300.0
_LONGEST_PAUSE_SECONDS = 15.0
_BLOCK_BYTES = 8 << 20  # Of a remote file, per request.

_patience = threading.local()

_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")
# Extras of this project that install the library of a scheme; others have their own library.
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
# Errors that are an answer of the file system, and will not pass.
_ANSWERS = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    NotImplementedError,
    ImportError,
    ValueError,
    TypeError,
)
# The same, of libraries that are not imported here, by the type and text of their errors.
_REFUSALS = re.compile(
    r"NoCredentials|DefaultCredentialsError|ParamValidationError|RefreshError|ExpiredToken"
    r"|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch|invalid_grant|InvalidToken"
    r"|AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|InvalidBucketName"
    r"|OSError Forbidden"
)
_NO_BUCKET = re.compile(r"no such bucket|bucket does not exist")


def is_remote(path: str) -> bool:
    """Whether a path is a URL.

    Example:
      >>> is_remote("gs://bucket/text.txt"), is_remote("text.txt")
      (True, False)
    """
    return _URL.match(path) is not None


def open(path: str, mode: str = "r", buffering: int = -1, **options: Any) -> IO[Any]:
    """Opens a file for reading; see `atomic.atomic_write` for writing.

    Args:
      path: a path of any kind.
      mode: `r` or `rb`.
      buffering: as for Python's `open`.
      **options: `encoding` and `errors`, as for Python's `open`.

    Raises:
      FileNotFoundError: there is no file.
      DataError: it is a pipe, a device or a socket, which may never end.
    """
    if not is_remote(path):
        kind = os.stat(path).st_mode  # Of a directory, Python says what it is.
        is_regular = stat.S_ISREG(kind) or stat.S_ISDIR(kind)
        got = f"{'a pipe' if stat.S_ISFIFO(kind) else 'a device or a socket'}; copy its content"
        require_data(is_regular, path, "a regular file", f"{got} to a file")
        return builtins.open(path, mode, buffering, **options)
    raw = _open_remote(path)
    if buffering == 0:
        return raw
    file = io.BufferedReader(raw, _BLOCK_BYTES)
    return file if "b" in mode else io.TextIOWrapper(file, **options)


def read_bytes(path: str) -> bytes:
    """The content of a regular file, of any file system."""
    with open(path, "rb") as file:
        return file.read()


def exists(path: str) -> bool:
    """Whether there is a file or a directory; on an object store, a directory of some file."""
    return os.path.exists(path) if not is_remote(path) else _kind(path) is not None


def is_file(path: str) -> bool:
    """Whether there is a file."""
    return os.path.isfile(path) if not is_remote(path) else _kind(path) == "file"


def is_dir(path: str) -> bool:
    """Whether there is a directory."""
    return os.path.isdir(path) if not is_remote(path) else _kind(path) == "directory"


def size(path: str) -> int:
    """Size of a file in bytes.

    Raises:
      FileNotFoundError: there is no file.
    """
    if not is_remote(path):
        return os.path.getsize(path)
    with open(path, "rb") as file:
        return file.seek(0, os.SEEK_END)


def version(path: str) -> int | str:
    """Version of a file, which changes whenever it is written: a time in ns, or a remote key."""
    if is_remote(path):
        return _call(path, lambda system, name: system.ukey(name))
    return os.stat(path).st_mtime_ns


def names(directory: str) -> list[str]:
    """Names of the files and directories in a directory, in no order.

    Raises:
      FileNotFoundError: there is no directory.
    """
    if not is_remote(directory):
        return os.listdir(directory)
    found = _call(directory, lambda system, name: system.ls(name, detail=False))
    return [*filter(None, (os.path.basename(name.rstrip("/")) for name in found))]


def tree(directory: str) -> dict[str, int]:
    """{path relative to the directory: size in bytes} of all files below a remote directory."""
    found = _call(directory, lambda system, name: system.find(name, detail=True))
    start = len(_system(directory)._strip_protocol(directory).rstrip("/")) + 1
    return {name[start:]: info["size"] for name, info in found.items() if name[start:]}


def glob(pattern: str) -> list[str]:
    """Paths that match a pattern; `**` matches directories recursively."""
    if not is_remote(pattern):
        return _local_glob(f"{pattern}/*" if os.path.basename(pattern) == "**" else pattern)
    return _call(
        pattern,
        lambda system, name: [system.unstrip_protocol(path) for path in system.glob(name)],
    )


def _local_glob(pattern: str) -> list[str]:
    """As `glob.glob`, with each directory of `**` once, also where links form a cycle."""
    before, stars, after = pattern.partition("**/")
    if not stars or before[-1:] not in ("", "/"):
        return local_glob.glob(pattern)
    found: dict[str, None] = {}
    for base in local_glob.glob(before) if before else [""]:
        for folder in _folders(base, set()):
            found |= dict.fromkeys(_local_glob(os.path.join(local_glob.escape(folder), after)))
    return list(found)


def _folders(folder: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    """A directory and those below it, in order, but hidden ones and those that were seen."""
    facts = os.stat(folder or os.curdir)
    if (facts.st_dev, facts.st_ino) not in seen:
        seen.add((facts.st_dev, facts.st_ino))
        yield folder
        for name in sorted(local_glob.glob("*/", root_dir=folder or None)):
            yield from _folders(os.path.join(folder, name), seen)


def make_dirs(directory: str) -> None:
    """Makes a directory and those above it; on a remote file system, writing a file does."""
    if not is_remote(directory):
        os.makedirs(directory, exist_ok=True)


def remove(path: str) -> None:
    """Removes a file.

    Raises:
      FileNotFoundError: there is none.
    """
    if not is_remote(path):
        os.unlink(path)
    else:
        _call(path, lambda system, name: system.rm_file(name))


def remove_tree(directory: str) -> None:
    """Removes a directory with all that is in it, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        if is_remote(directory):
            _call(directory, lambda system, name: system.rm(name, recursive=True))
        else:
            shutil.rmtree(directory, ignore_errors=True)


def upload(local: str, url: str) -> None:
    """Copies a local file to a remote file system; on an object store it appears at once, whole."""

    def put(system: fsspec.AbstractFileSystem, name: str) -> None:
        try:
            system.put_file(local, name)
        except FileNotFoundError:  # The directory, where file systems have them.
            _find_bucket(system, name)
            system.makedirs(os.path.dirname(name), exist_ok=True)
            system.put_file(local, name)

    _call(url, put)


def require_bucket(url: str) -> None:
    """Raises `FileNotFoundError` if the bucket of a URL is missing, which is never made."""
    with contextlib.suppress(PermissionError):  # Writing may be allowed all the same.
        _call(url, _find_bucket)


def _find_bucket(system: fsspec.AbstractFileSystem, name: str) -> None:
    bucket, slash, _ = name.partition("/")
    try:
        if bucket and slash:  # Paths of other file systems begin with a slash.
            system.info(bucket)
    except FileNotFoundError:
        raise FileNotFoundError("no such bucket") from None


def download(url: str, local: str) -> None:
    """Copies a remote file to the local disk."""
    with open(url, "rb") as source, builtins.open(local, "wb") as target:
        shutil.copyfileobj(source, target, _BLOCK_BYTES)


def create(path: str, content: bytes) -> None:
    """Writes a file that is not there yet, and does nothing if it is.

    It is one step on disks and on object stores with conditional writes (S3, GCS); on others, the
    later of two writers within the same moment wins.
    """

    def pipe(system: fsspec.AbstractFileSystem, name: str) -> None:
        if not system.exists(name):
            system.pipe_file(name, content, mode="create")

    with contextlib.suppress(FileExistsError):
        if is_remote(path):
            _call(path, pipe)
        else:
            with builtins.open(path, "xb") as file:
                file.write(content)


def _open_remote(url: str) -> Any:
    """A remote file, read in independent requests: a request that failed can be repeated."""
    from fsspec.spec import AbstractBufferedFile

    class RemoteFile(AbstractBufferedFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            end = min(end, self.size)
            data = _call(url, lambda system, name: system.cat_file(name, start=start, end=end))
            is_whole = len(data) == end - start
            require_data(is_whole, url, f"bytes {start} to {end}", f"{len(data)} bytes")
            is_same = end < self.size or not opened or version(url) == opened
            require_data(is_same, url, "one version of the file", "another, written meanwhile")
            return data

    size, system = _info(url)["size"], _system(url)
    if size != 0 and url.startswith(("http://", "https://")) and not _call(url, _sends_parts):
        return _call(url, lambda system, name: _web_cache().open(name))
    opened = version(url) if (size or 0) > _BLOCK_BYTES else ""  # Others are one request.
    return RemoteFile(system, system._strip_protocol(url), size=size, cache_type="none")


def _sends_parts(system: fsspec.AbstractFileSystem, url: str) -> bool:
    # fsspec raises ValueError where the server sends the file as a whole.
    with contextlib.suppress(ValueError), system.open(url, cache_type="none") as file:
        file.seek(1)
        return bool(file.read(1))
    return False


@functools.cache
def _web_cache() -> fsspec.AbstractFileSystem:
    """Files of web servers that send them only as a whole, each once, until the process ends."""
    import fsspec

    return fsspec.filesystem("simplecache", target_protocol="http")


def fail_at_once() -> None:
    """From now on, this thread's calls to remote file systems fail at their first fault."""
    _patience.seconds = 0.0


def _kind(path: str) -> str | None:
    try:
        return _info(path)["type"]
    except FileNotFoundError:
        return None


def _info(path: str) -> dict[str, Any]:
    return _call(path, lambda system, name: system.info(name))


def _call(path: str, function: Callable[[Any, str], Any]) -> Any:
    """Returns `function(file system, path as it takes it)`, repeated while it fails."""
    import tenacity

    def attempt() -> Any:
        system = _system(path)
        system.invalidate_cache()
        name = system._strip_protocol(path)
        try:
            return function(system, name)
        except OSError as error:
            if error.errno == errno.EINVAL and _code(error) == errno.EIO:
                # S3 does not say why in its answer to a HEAD; to a listing it does.
                with contextlib.suppress(FileNotFoundError):
                    system.find(f"{name}/-")
            raise

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda error: _code(error) == errno.EIO),
        wait=tenacity.wait_random_exponential(0.5, _LONGEST_PAUSE_SECONDS),
        stop=tenacity.stop_after_delay(getattr(_patience, "seconds", PATIENCE_SECONDS)),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except Exception as error:
        code, said = _code(error), getattr(error, "strerror", None) or str(error)
        if not code:
            raise
        if code == errno.ENOENT:
            said = "no such bucket" if _NO_BUCKET.search(said) else os.strerror(code)
        if code == errno.EIO:
            times = retrying.statistics.get("attempt_number", 1)
            said = f"could not be reached in {times} attempts: {type(error).__name__}: {error}"
        raise OSError(code, said, path) from error


def _code(error: BaseException) -> int:
    """Error number: ENOENT, EACCES, EIO for a fault that may pass, 0 for what is raised as is."""
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT
    if isinstance(error, PermissionError):
        return errno.EACCES
    if isinstance(error, _ANSWERS) or not isinstance(error, Exception):
        return 0
    is_refusal = _REFUSALS.search(f"{type(error).__name__} {error} {error.__cause__}")
    return errno.EACCES if is_refusal else errno.EIO


def _system(path: str) -> fsspec.AbstractFileSystem:
    """The file system of a URL; fsspec keeps one for each process.

    Raises:
      ConfigError: no library that is installed knows the scheme.
    """
    import fsspec

    scheme = path.partition("://")[0].lower()
    try:
        known = fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise ConfigError(
            f"{path}: expected a file system that fsspec knows, got {scheme}://"
        ) from None
    except ImportError as error:
        extra = _EXTRAS.get(scheme)
        how = how_to_install(extra) if extra else str(error)
        raise ConfigError(f"{path}: the library for {scheme}:// is not installed: {how}") from None
    return known(use_listings_cache=False)
