"""One writer for each directory: a lock file that names its holder.

On a local file system the kernel locks the file for its holder (`flock`) and gives it up when the
process ends, however it ends. A lock file that this machine has left there is free; one of another
machine, which may write through a network file system, is left alone.

Other file systems may know the locks of one host alone. There the file itself is the lock, made by
a hard link (or by an exclusive open where there are none), which is one step on network file
systems, too. A lock whose process has ended is removed by one process, and taken over. A process is
known by its number, its start, its namespace, which containers do not share, and its host by its
name and the boot of its kernel; of another host it cannot be known whether a process has ended, and
the error says which file to remove.

On a bucket, the lock is an object that is written only if there is none, which is one step where
the store has conditional writes; see `file_system.create`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import uuid
from collections.abc import Iterator
from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import remove_unfinished
from official.xlnet.files.json_files import json_text, parse_json
from official.xlnet.files.schema import conform

LOCK_FILE = ".lock"
_NO_LINKS = (OSError, NotImplementedError)  # Other than FileExistsError.
_MAX_BYTES = 4096  # Of a lock file.
_ATTEMPTS = 100  # To hold a lock that others give up and take at the same time.
# File systems of this machine, whose kernel knows their locks.
_LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}

_Owner = dict[str, object]


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
    descriptor = None
    if not is_remote and _is_local(directory):
        descriptor = _lock(path, owner)
    else:
        _create(path, owner)
    try:
        if not is_remote:
            remove_unfinished(directory)
        yield
    finally:
        _remove(path, owner)
        if descriptor is not None:
            os.close(descriptor)  # After the removal: whoever waits for it finds that it is gone.
        if is_new:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(directory)


def _lock(path: str, owner: _Owner) -> int:
    """A descriptor of the lock file, which the kernel has locked for it.

    Raises:
      DataError: another process holds it, or may do so (`_may_write`).
    """
    for _ in range(_ATTEMPTS):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = _open(path)
        if descriptor is None:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                if _may_write(_parsed(os.read(descriptor, _MAX_BYTES))):
                    raise BlockingIOError
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, (json_text(owner) + "\n").encode(), 0)
                return descriptor
            os.close(descriptor)  # Its holder has just removed it.
        except BlockingIOError:
            other = _parsed(os.pread(descriptor, _MAX_BYTES, 0))
            os.close(descriptor)
            raise _held(path, other) from None
        except BaseException:
            os.close(descriptor)
            raise
    raise _held(path, {})


def _open(path: str) -> int | None:
    """The lock file, made if it is not there; None if the directory has just been removed."""
    try:
        descriptor = os.open(
            path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644
        )
    except FileNotFoundError:
        return None
    except OSError:
        if os.path.islink(path):
            raise DataError(f"{path}: expected a file, got a symbolic link; remove it") from None
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise DataError(f"{path}: expected a regular file, got another kind; remove it")


def _is_at(descriptor: int, path: str) -> bool:
    """Whether a path leads to an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _is_local(directory: str) -> bool:
    """Whether the processes of this machine see each other's kernel locks in a directory."""
    path, kind, longest = os.path.join(os.path.realpath(directory), ""), "", 0
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            mounts = file.read().splitlines()
    except OSError:
        return False
    for line in mounts:
        fields, _, rest = line.partition(" - ")
        place = os.path.join(fields.split()[4].replace("\\040", " "), "")
        if path.startswith(place) and len(place) >= longest:
            longest, kind = len(place), rest.split()[0]
    return kind in _LOCAL


def _held(path: str, other: _Owner) -> DataError:
    who = f"process {other['pid']} on {other.get('host')}" if "pid" in other else "another process"
    return DataError(
        f"{os.path.dirname(path)}: {who} is writing there; wait for it, choose another directory, "
        f"or, if it has ended, remove {path}"
    )


def _create(path: str, owner: _Owner) -> None:
    """Makes the lock file, which is the lock itself.

    Raises:
      DataError: another process holds it.
    """
    for _ in range(_ATTEMPTS):
        if _is_created(path, owner):
            return
        other = _read(path)
        if other is not None:
            if not _has_ended(other):
                raise _held(path, other)
            _remove_ended(path, other)
    raise _held(path, {})


def _is_created(path: str, owner: _Owner) -> bool:
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


def _remove_ended(path: str, other: _Owner) -> None:
    """Removes the lock file of a process that has ended, if it is still that one.

    Between the look and the removal nobody else may do the same, or it could be the lock of the
    next holder that is removed. So whoever removes this lock holds one of its own meanwhile.
    """
    claim = f"{path}.{uuid.uuid5(uuid.NAMESPACE_OID, json_text(other)).hex}"
    this = {**_this_process(), "lock": uuid.uuid4().hex}
    if _is_created(claim, this):
        _remove(path, other)
        _remove(claim, this)
        return
    claimant = _read(claim)
    if claimant is not None and _has_ended(claimant):
        _remove_ended(claim, claimant)


def _read(path: str) -> _Owner | None:
    """Who holds a lock; None where it has just been given up. An unreadable one has no host."""
    try:
        with file_system.open(path, "rb") as file:
            return _parsed(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return None


def _parsed(content: bytes) -> _Owner:
    try:
        return conform(parse_json(content.decode(), LOCK_FILE), dict[str, Any], LOCK_FILE)
    except (DataError, UnicodeDecodeError):
        return {}


def _has_ended(owner: _Owner) -> bool:
    """Whether a holder, a process of this host and namespace, is known to have ended."""
    this = _this_process()
    same = (owner.get(key, this[key]) == this[key] for key in ("boot", "namespace"))
    is_here = owner.get("host") == this["host"] and isinstance(owner.get("pid"), int) and all(same)
    return is_here and owner.get("started") != _started(owner["pid"])


def _may_write(owner: _Owner) -> bool:
    """Whether a process may hold a lock that this kernel does not know of.

    It is of another machine, or of an earlier version, which does not use `flock`.
    """
    this = _this_process()
    if "host" not in owner or owner.get("boot") == this["boot"]:
        return False
    if owner["host"] != this["host"]:
        return True
    return "boot" not in owner and owner.get("started") == _started(owner.get("pid"))


def _remove(path: str, owner: _Owner) -> None:
    """Removes a lock if it is still the owner's."""
    if _read(path) == owner:
        with contextlib.suppress(FileNotFoundError):
            file_system.remove(path)


def _this_process() -> _Owner:
    pid = os.getpid()
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot = namespace = ""
    return {
        "host": socket.gethostname(),
        "boot": boot,
        "namespace": namespace,
        "pid": pid,
        "started": _started(pid),
    }


def _started(pid: object) -> str:
    """When a process began, as the system counts; empty for one that has ended.

    It tells apart two processes that had the same number one after the other.
    """
    if not os.path.isdir("/proc/self"):
        return _is_alive(pid)
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state == "Z" else fields[18]


def _is_alive(pid: object) -> str:
    """The same where the system has no /proc: only whether there is such a process."""
    try:
        os.kill(int(str(pid)), 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "running"
