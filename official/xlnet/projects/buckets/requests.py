"""Calls to remote file systems, repeated while they fail.

A failed call is repeated with growing pauses, for `PATIENCE_SECONDS` in all. An error that is an
answer (no such file, no permission) is raised at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeVar

from official.xlnet.projects.buckets.libraries import library_of

if TYPE_CHECKING:
    import fsspec

_T = TypeVar("_T")

PATIENCE_SECONDS = 300.0
LONGEST_PAUSE_SECONDS = 15.0
_FIRST_PAUSE_SECONDS = 0.5

_patience = threading.local()

# Errors that are an answer of the file system: a repeated call would get the same one.
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
# Refusals in errors of libraries that are not imported here, by the type and text of the error.
_REFUSALS = re.compile(
    r"NoCredentials|DefaultCredentialsError|ParamValidationError|RefreshError|ExpiredToken"
    r"|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch|invalid_grant|InvalidToken"
    r"|AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint|InvalidBucketName"
    r"|OSError Forbidden"
)
_NO_BUCKET = re.compile(r"no such bucket|bucket does not exist")
_NOT_AN_OS_ERROR = 0


def call(url: str, function: Callable[[fsspec.AbstractFileSystem, str], _T]) -> _T:
    """Returns the result of a function on a remote file system, which is repeated while it fails.

    Args:
      url: a file or directory.
      function: called with (fsspec file system, name of the file or directory there).

    Raises:
      OSError: the file system refused the call, or it failed for `PATIENCE_SECONDS`; the error
        names the URL.
    """
    import tenacity

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(_may_pass),
        wait=tenacity.wait_random_exponential(_FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS),
        stop=tenacity.stop_after_delay(getattr(_patience, "seconds", PATIENCE_SECONDS)),
        reraise=True,
    )
    try:
        return retrying(_call_once, url, function)
    except Exception as error:
        _raise_with_url(error, url, retrying.statistics.get("attempt_number", 1))


def fail_at_once() -> None:
    """From now on, calls of this thread are not repeated."""
    _patience.seconds = 0.0


def _call_once(url: str, function: Callable[[fsspec.AbstractFileSystem, str], _T]) -> _T:
    library = library_of(url)
    library.invalidate_cache()
    name = library._strip_protocol(url)
    try:
        return function(library, name)
    except OSError as error:
        if error.errno == errno.EINVAL and _may_pass(error):
            _ask_for_reason(library, name)
        raise


def _ask_for_reason(library: fsspec.AbstractFileSystem, name: str) -> None:
    """Raises the reason of a refused call, if a listing is refused too.

    S3 answers a HEAD request without a reason, but a request for a listing with one.
    """
    with contextlib.suppress(FileNotFoundError):
        library.find(f"{name}/-")


def _raise_with_url(error: Exception, url: str, num_attempts: int) -> NoReturn:
    """Raises an `OSError` that names a URL; errors in the program itself are raised unchanged."""
    error_number = _error_number(error)
    if error_number == _NOT_AN_OS_ERROR:
        raise error
    message = getattr(error, "strerror", None) or str(error)
    if error_number == errno.ENOENT:
        is_bucket = _NO_BUCKET.search(message) is not None
        message = "no such bucket" if is_bucket else os.strerror(error_number)
    if error_number == errno.EIO:
        reason = f"{type(error).__name__}: {error}"
        message = f"could not be reached in {num_attempts} attempts: {reason}"
    raise OSError(error_number, message, url) from error


def _may_pass(error: BaseException) -> bool:
    """Whether a repeated call may succeed."""
    return _error_number(error) == errno.EIO


def _error_number(error: BaseException) -> int:
    """Returns ENOENT, EACCES, EIO for a fault that may pass, or 0 for an error raised as it is."""
    if isinstance(error, FileNotFoundError):
        return errno.ENOENT
    if isinstance(error, PermissionError):
        return errno.EACCES
    if isinstance(error, _ANSWERS) or not isinstance(error, Exception):
        return _NOT_AN_OS_ERROR
    if _REFUSALS.search(f"{type(error).__name__} {error} {error.__cause__}"):
        return errno.EACCES
    return errno.EIO
