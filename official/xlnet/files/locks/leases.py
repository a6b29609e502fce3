"""Leases: locks of directories on network file systems and in buckets, whose locks no kernel knows.

A lease is a file. Its holder writes it again every half minute; a process that sees it unchanged
for five minutes takes it over, or at once if its holder was a process of this machine that has
ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator

from absl import logging

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.locks.process_identity import has_ended, process_text

RENEWAL_SECONDS = 30.0
EXPIRY_SECONDS = 300.0
_SETTLING_SECONDS = 3.0


def in_use(path: str, lease_text: str) -> DataError:
    """Returns the error for a directory that another process writes to.

    Args:
      path: the lock file.
      lease_text: its content, which names the process; empty for a lock of the kernel.
    """
    return DataError(
        f"{os.path.dirname(path)}: {_holder(lease_text)} is writing there; wait for it, or choose "
        "another directory"
    )


@dataclasses.dataclass
class Lease:
    """A lease that this process holds.

    Attributes:
      path: the file.
      text: its first lines, which identify the process and this lease.
      renewal_time: time of the last renewal, in seconds of `time.monotonic()`.
      successor: the lease of another process that has taken this one over; empty if none has.
    """

    path: str
    text: str
    renewal_time: float
    successor: str = ""

    def require_held(self) -> None:
        """Raises `DataError` if another process has taken the lease over."""
        if self.successor:
            raise in_use(self.path, self.successor)
        if time.monotonic() - self.renewal_time > EXPIRY_SECONDS / 2:
            self._require_own_file()

    def _require_own_file(self) -> None:
        text = _read(self.path)
        if text is not None and not text.startswith(self.text):
            raise in_use(self.path, text)

    def take(self) -> None:
        """Writes the lease, when no other process holds one.

        Raises:
          DataError: another process holds one.
        """
        has_expired_lease = _wait_until_free(self.path)
        file_system.create(self.path, self.text.encode())
        if has_expired_lease:
            # Another process that waited may remove this lease instead of the expired one.
            time.sleep(min(_SETTLING_SECONDS, EXPIRY_SECONDS / 100))
        self._require_own_file()
        self.renewal_time = time.monotonic()

    def renew_until(self, is_over: threading.Event) -> None:
        """Writes the lease in regular intervals, until another process has taken it over.

        Then the next save fails, see `require_held`. If the file is missing, as it may seem on
        network file systems for a moment, it is written anew.
        """
        # A repeated attempt could replace the lease of another process.
        file_system.fail_at_once(self.path)
        while not is_over.wait(RENEWAL_SECONDS):
            try:
                self._renew()
            except OSError as error:
                logging.warning("%s: %s; trying again", self.path, error)
            if self.successor:
                return

    def _renew(self) -> None:
        now = time.monotonic()
        text = _read(self.path)
        if text is None:
            file_system.create(self.path, self.text.encode())
        elif text.startswith(self.text):
            write_bytes(self.path, f"{self.text}{now}\n".encode())
        else:
            self.successor = text or "another process"
            logging.error("%s; nothing more is saved here", in_use(self.path, text))
            return
        self.renewal_time = now

    def give_back(self) -> None:
        """Removes the file if it is still of this process; after an error it expires."""
        with contextlib.suppress(OSError):
            if (_read(self.path) or "").startswith(self.text):
                file_system.remove(self.path)


@contextlib.contextmanager
def held_lease(path: str) -> Iterator[Lease]:
    """Context manager that holds a lease, and yields it.

    Args:
      path: the file.

    Raises:
      DataError: another process holds one.
    """
    lease = Lease(path, process_text(uuid.uuid4().hex), time.monotonic())
    lease.take()
    is_over = threading.Event()
    renewal = threading.Thread(target=lease.renew_until, args=(is_over,), daemon=True)
    renewal.start()
    try:
        with _exit_on_sigterm():
            yield lease
    finally:
        is_over.set()
        renewal.join()
        lease.give_back()


@contextlib.contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """SIGTERM raises `SystemExit` in the block, so that leases are given back.

    The exit status is 143. A program that handles SIGTERM is left alone.
    """

    def end(signal_number: int, frame: object) -> None:
        signal.signal(signal_number, signal.SIG_IGN)  # Some launchers send it twice.
        sys.exit(128 + signal_number)

    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _wait_until_free(path: str) -> bool:
    """Removes a lease that is not held; returns whether there was one.

    That is known at once of a process of this machine that has ended, and of others when the lease
    has not changed for a while.

    Raises:
      DataError: its holder has renewed it.
    """
    first_text = _read(path)
    if first_text is None:
        return False
    expiry_time = time.monotonic() + EXPIRY_SECONDS
    if has_ended(first_text):
        logging.info("%s: %s has ended", os.path.dirname(path), _holder(first_text))
    else:
        logging.warning(
            "%s: %s was writing there; waiting for up to %d s to see whether it still is",
            os.path.dirname(path),
            _holder(first_text),
            EXPIRY_SECONDS,
        )
    while (text := _read(path)) is not None:
        if text != first_text:
            raise in_use(path, text)
        if has_ended(text) or time.monotonic() > expiry_time:
            with contextlib.suppress(FileNotFoundError):
                file_system.remove(path)
            break
        time.sleep(RENEWAL_SECONDS / 10)
    return True


def _read(path: str) -> str | None:
    """Returns the content of a lease, empty if a kernel lock left the file; None without a file."""
    with contextlib.suppress(FileNotFoundError):
        return file_system.read_bytes(path).decode(errors="replace")
    return None


def _holder(lease_text: str) -> str:
    first_line = lease_text.partition("\n")[0]
    return first_line if first_line.startswith("process ") else "another process"
