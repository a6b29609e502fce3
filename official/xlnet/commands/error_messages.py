"""What the `xlnet` command says about an error; imported after one."""

from __future__ import annotations

import errno
import os
import re
from typing import Any

from absl import flags

from official.xlnet.commands.declarations import COMMON, declaration
from official.xlnet.errors import XLNetError
from official.xlnet.files.urls import with_urls

_DISK_ERRORS = (
    errno.EMFILE,
    errno.ENFILE,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EISDIR,
    errno.ESTALE,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EIO,
    errno.ENOENT,
    errno.ENOTDIR,
)
# A version of an export that is being written; its user knows the directory that it is in.
_INCOMPLETE = re.compile(r"/\.incomplete-.*")


def user_message(error: Exception, verb: str) -> str | None:
    """Returns the message for invalid input or a disk error, with flags and URLs; None for a bug.

    Args:
      error: the error.
      verb: the verb; empty if it is not known yet.
    """
    message = _message(error)
    if message is None or getattr(error, "names_local_paths", False):
        return message
    known = {parameter.name for parameter in COMMON}
    if verb:
        known |= declaration(verb).parameters.keys()
    name = re.match(r"\w+(?![.\w])", message)
    is_flag = isinstance(error, XLNetError) and name and name[0] in known
    if is_flag:
        message = f"--{message}"
    return with_urls(message)


def _message(error: Exception) -> str | None:
    if isinstance(error, flags.Error):
        missing = re.match(r"flag --\w+=None: Flag (--\w+) must have a value", str(error))
        return f"{missing[1]} is required" if missing else str(error)
    if isinstance(error, OSError):
        # Copying names both files, and fails at the second one.
        name = error.filename2 or error.filename
        where = f": {_known_path(name)!r}" if name else ""
        if "No usable temporary directory" in str(error):
            where = "; set TMPDIR to a directory that can be written to"
        return f"{error.strerror or error}{where}"
    if isinstance(error, XLNetError):
        return str(error)
    if isinstance(error, MemoryError):
        return f"out of memory; use a smaller model, batch or input {error}"
    is_of_tensorflow = type(error).__module__.startswith("tensorflow.")
    return _tensorflow_message(error) if is_of_tensorflow else None


def _known_path(path: Any) -> Any:
    """A path as its user knows it; descriptors of files are numbers."""
    return _INCOMPLETE.sub("", path) if isinstance(path, str) else path


def _tensorflow_message(error: Any) -> str | None:
    """Message for a disk or memory error of TensorFlow; None for any other of its errors.

    TensorFlow reports errors of the operating system by their message only, behind the file.
    """
    text = re.sub(r"{{.*?}}", "", getattr(error, "message", str(error)))
    for reason in map(os.strerror, _DISK_ERRORS):
        if match := re.search(rf"(.*?);? ?{re.escape(reason)}", text, re.IGNORECASE):
            name = _known_path(match[1].strip())
            return f"{reason}: {name!r}" if name else reason
    if type(error).__name__ == "ResourceExhaustedError":
        shape = re.search(r"shape ?\[[\d, ]*\]", text)
        what = f" for an array of {shape[0]}" if shape else ""
        return f"out of memory{what}; use a smaller model, batch or input"
    return None
