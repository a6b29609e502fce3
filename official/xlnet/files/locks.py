"""One writer for each directory, by the file `.lock` in it.

On a file system of this machine the kernel locks the file, and gives it up when the process ends,
however it ends. On network file systems and buckets the file is a lease: its holder writes it again
every half minute, and whoever sees it unchanged for five minutes takes it over.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator

import filelock
from absl import logging

from official.xlnet.errors import DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.atomic import is_local, write_bytes

LOCK_FILE = ".lock"
RENEWAL_SECONDS = 30.0
EXPIRY_SECONDS = 300.0

_held_directories: dict[str, os.stat_result] = {}  # Of this process, as they were at first.
_leases: dict[str, tuple[str, float]] = {}  # By path: the lease, and when it was last written.
_taken_over: dict[str, str] = {}  # By path: the lease of another process in place of ours.


@contextlib.contextmanager
def only_writer(directory: str, is_writer: bool = True) -> Iterator[None]:
    """Holds the lock of a directory, which is made if it is not there.

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
    """Raises `DataError` if a directory that is held here was replaced, or its lease taken over."""
    path = os.path.join(directory, LOCK_FILE)
    if path in _taken_over:
        raise _held(path, _taken_over[path])
    lease, written = _leases.get(path, ("", math.inf))
    if time.monotonic() - written > EXPIRY_SECONDS / 2:
        _require_own(path, lease)
    own = _held_directories.get(directory)
    require_data(
        not own or bool(os.path.exists(directory) and os.path.samestat(own, os.stat(directory))),
        directory,
        "the directory that this command began to write",
        f"{'another one' if os.path.exists(directory) else 'none'}; it was moved or removed",
    )


@contextlib.contextmanager
def _kernel_lock(path: str) -> Iterator[None]:
    try:
        with filelock.FileLock(path, blocking=False):
            own = os.stat(path)
            try:
                yield
            finally:  # While it is held: an unlinked file does not lock.
                with contextlib.suppress(FileNotFoundError):
                    # Another directory may be in the place of the one that was locked.
                    if os.path.samestat(own, os.stat(path)):
                        os.unlink(path)
    except filelock.Timeout:
        raise _held(path, "") from None


@contextlib.contextmanager
def _lease(path: str) -> Iterator[None]:
    lease = f"process {os.getpid()} on {socket.gethostname()}\n{uuid.uuid4().hex}\n"
    is_taken_over = _wait_until_free(path)
    file_system.create(path, lease.encode())
    if is_taken_over:  # Another process may now remove this lease instead of the expired one.
        time.sleep(EXPIRY_SECONDS / 100)
    _require_own(path, lease)
    _leases[path] = lease, time.monotonic()
    is_over = threading.Event()
    renewal = threading.Thread(target=_renew, args=(path, lease, is_over), daemon=True)
    renewal.start()
    try:
        with _unwound_by_sigterm():
            yield
    finally:
        is_over.set()
        renewal.join()
        del _leases[path]
        _taken_over.pop(path, None)
        with contextlib.suppress(OSError):  # It expires.
            if (_read(path) or "").startswith(lease):
                file_system.remove(path)


@contextlib.contextmanager
def _unwound_by_sigterm() -> Iterator[None]:
    """SIGTERM leaves the block by `SystemExit`, unless the program handles it, with status 143."""

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # Some launchers send it twice.
        sys.exit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    with contextlib.ExitStack() as at_end:
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, end)
            at_end.callback(signal.signal, signal.SIGTERM, signal.SIG_DFL)
        yield


def _wait_until_free(path: str) -> bool:
    """Removes a lease that has not changed for a while; returns whether there was one.

    Raises:
      DataError: its holder has renewed it.
    """
    lease, expiry = _read(path), time.monotonic() + EXPIRY_SECONDS
    if lease is not None:
        logging.warning(
            "%s: %s was writing there; waiting for up to %d s to see whether it still is",
            os.path.dirname(path),
            _holder(lease),
            EXPIRY_SECONDS,
        )
    while (now := _read(path)) is not None:
        if now != lease:
            raise _held(path, now)
        if time.monotonic() > expiry:
            with contextlib.suppress(FileNotFoundError):
                file_system.remove(path)
            break
        time.sleep(RENEWAL_SECONDS / 10)
    return lease is not None


def _renew(path: str, lease: str, is_over: threading.Event) -> None:
    """Writes the lease again and again, until another process has taken it over.

    Then the next save fails, see `require_in_place`. A lease that is not seen, as on network file
    systems for a moment, is written anew if there is no other one.
    """
    file_system.fail_at_once()  # Or a late write would replace the lease of another process.
    while not is_over.wait(RENEWAL_SECONDS):
        now = time.monotonic()
        try:
            if (found := _read(path)) is None:
                file_system.create(path, lease.encode())
            elif found.startswith(lease):
                write_bytes(path, f"{lease}{now}\n".encode())
            else:
                _taken_over[path] = found
                logging.error("%s; nothing more is saved here", _held(path, found))
                return
            _leases[path] = lease, now
        except OSError as error:
            logging.warning("%s: %s; trying again", path, error)


def _require_own(path: str, lease: str) -> None:
    found = _read(path)
    if found is not None and not found.startswith(lease):
        raise _held(path, found)


def _read(path: str) -> str | None:
    """The lease, empty if a kernel lock left the file; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        return file_system.read_bytes(path).decode(errors="replace")
    return None


def _holder(lease: str) -> str:
    first = lease.partition("\n")[0]
    return first if first.startswith("process ") else "another process"


def _held(path: str, lease: str) -> DataError:
    return DataError(
        f"{os.path.dirname(path)}: {_holder(lease)} is writing there; wait for it, or choose "
        "another directory"
    )
