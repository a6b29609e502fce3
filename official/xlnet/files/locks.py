"""One writer for each directory: a lock file that names the host and the process.

The lock is a file, made by a hard link (or by an exclusive open where there are none), which is
one step on network file systems, too. A lock whose process has ended is stale and is taken over;
on another host that cannot be known, and the error says which file to remove.

On a bucket, the lock is an object that is written only if there is none, which is one step where
the store has conditional writes; see `file_system.create`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import remove_unfinished
from official.xlnet.files.json_files import json_text, read_json

LOCK_FILE = ".lock"
_NO_LINKS = (OSError, NotImplementedError)  # Other than FileExistsError.


@contextlib.contextmanager
def only_writer(directory: str, is_writer: bool = True) -> Iterator[None]:
    """Holds the lock of a directory, which is made if it is not there.

    Args:
      directory: the directory; removed again if it was made here and nothing was written.
      is_writer: whether this process writes; False does nothing, for workers other than the chief.

    Raises:
      DataError: another process writes there, or did so on another host and left its lock.
    """
    if not is_writer:
        yield
        return
    is_remote = file_system.is_remote(directory)
    is_new = not is_remote and not os.path.exists(directory)
    path = os.path.join(directory, LOCK_FILE)
    owner = {**_this_process(), "lock": uuid.uuid4().hex}
    while not _create(path, owner):
        other = _read(path)
        if other is not None and not _is_stale(other):
            raise DataError(
                f"{directory}: process {other.get('pid')} on {other.get('host')} is writing "
                f"there; wait for it, choose another directory, or, if it has ended, remove {path}"
            )
        _remove(path, other)
    try:
        if not is_remote:
            remove_unfinished(directory)
        yield
    finally:
        _remove(path, owner)
        if is_new:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(directory)


def _create(path: str, owner: dict[str, object]) -> bool:
    """Makes the lock file, whole; False where there is one, or it has to be tried again."""
    own = f"{path}.{uuid.uuid4().hex}"
    text = json_text(owner) + "\n"
    if file_system.is_remote(path):
        # Ours, too, where the answer to an attempt was lost and the next one found it there.
        return file_system.create(path, text.encode()) or _read(path) == owner
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(own, "x", encoding="utf-8") as file:
            file.write(text)
    except FileNotFoundError:
        return False  # Another writer has just removed the directory, in which it wrote nothing.
    try:
        os.link(own, path)
    except FileExistsError:
        return False
    except _NO_LINKS:
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return False
    finally:
        os.unlink(own)
    return True


def _read(path: str) -> dict[str, object] | None:
    """Who holds a lock; None where it has just been given up. An unreadable one has no host."""
    try:
        tree = read_json(path)
    except FileNotFoundError:
        return None
    except DataError:
        tree = None
    return tree if isinstance(tree, dict) else {}


def _is_stale(owner: dict[str, object]) -> bool:
    this = _this_process()
    if owner.get("host") != this["host"] or not isinstance(owner.get("pid"), int):
        return False
    return owner.get("started") != _started(owner["pid"])


def _remove(path: str, owner: dict[str, object] | None) -> None:
    """Removes a lock if it is still the owner's."""
    if owner is not None and _read(path) == owner:
        with contextlib.suppress(FileNotFoundError):
            file_system.remove(path)


def _this_process() -> dict[str, object]:
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "started": _started(pid)}


def _started(pid: object) -> str:
    """When a process began, as the system counts; empty for one that has ended.

    It tells apart two processes that had the same number one after the other.
    """
    if not os.path.isdir("/proc/self"):
        return _is_running(pid)
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]


def _is_running(pid: object) -> str:
    """The same where the system has no /proc: only whether there is such a process."""
    try:
        os.kill(int(str(pid)), 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"
