"""One writer for each directory, by the file `.lock` in it.

On a file system of this machine the kernel locks the file, and gives it up when the process ends,
however it ends. On network file systems and in buckets the file is a lease, see `leases`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import filelock

from official.xlnet.errors import require_data
from official.xlnet.files import file_system
from official.xlnet.files.atomic import is_local

if TYPE_CHECKING:
    from official.xlnet.files.locks.leases import Lease

LOCK_FILE = ".lock"

_held_directories: dict[str, os.stat_result] = {}  # Of this process, as they were at first.
_held_leases: dict[str, Lease] = {}  # Of this process, by path of the lock file.


@contextlib.contextmanager
def only_writer(directory: str, is_writer: bool = True) -> Iterator[None]:
    """Context manager that holds the lock of a directory, which is made if it does not exist.

    Args:
      directory: the directory; removed again if it was made here and nothing was written.
      is_writer: whether this process writes; False does nothing, for workers other than the chief.

    Raises:
      DataError: another process writes there; or at the end, the directory was moved or removed.
    """
    if not is_writer:
        yield
        return
    is_remote = file_system.is_remote(directory)
    is_new = not is_remote and not os.path.exists(directory)
    file_system.make_dirs(directory)
    lock = _lease if is_remote or not is_local(directory) else _kernel_lock
    try:
        with lock(os.path.join(directory, LOCK_FILE)), contextlib.ExitStack() as at_end:
            if not is_remote:
                _held_directories[directory] = os.stat(directory)
                at_end.callback(_held_directories.pop, directory)
            yield
            require_in_place(directory)
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # It is not empty.
                os.rmdir(directory)


def require_in_place(directory: str) -> None:
    """Checks that a directory that this process holds was not replaced or taken over.

    Raises:
      DataError: it was moved or removed, or another process has taken its lease over.
    """
    lease = _held_leases.get(os.path.join(directory, LOCK_FILE))
    if lease is not None:
        lease.require_held()
    first_status = _held_directories.get(directory)
    if first_status is None:
        return
    exists = os.path.exists(directory)
    require_data(
        exists and os.path.samestat(first_status, os.stat(directory)),
        directory,
        "the directory that this command began to write",
        f"{'another one' if exists else 'none'}; it was moved or removed",
    )


@contextlib.contextmanager
def _kernel_lock(path: str) -> Iterator[None]:
    try:
        with filelock.FileLock(path, blocking=False):
            first_status = os.stat(path)
            try:
                yield
            finally:
                # It is removed while it is held, as an unlinked file does not lock. Another
                # directory may be in the place of the one that was locked.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(first_status, os.stat(path)):
                        os.unlink(path)
    except filelock.Timeout:
        from official.xlnet.files.locks.leases import in_use

        raise in_use(path, "") from None


@contextlib.contextmanager
def _lease(path: str) -> Iterator[None]:
    from official.xlnet.files.locks.leases import held_lease

    with held_lease(path) as lease:
        _held_leases[path] = lease
        try:
            yield
        finally:
            del _held_leases[path]
