"""Identity of a process on its machine, by which a later one knows for sure that it has ended."""

from __future__ import annotations

import os
import re
import socket

# Of `/proc/PID/stat` after the name of the command, which may contain spaces.
_STATE, _START_TIME = 0, 19
_ENDED_STATES = ("Z", "X")  # A zombie holds nothing, although its number is still taken.
_IDENTITY = re.compile(r"process (\d+) on ([^\n]*)\n[^\n ]+ (\S+) (\S+) (\d+)\n")


def identity() -> str:
    """Returns boot, container and start time of this process; empty where the system has none.

    Numbers of processes are those of a container (PID namespace), and are used again after its end
    or that of the process.
    """
    process_id = os.getpid()
    status = _status(process_id)
    machine = _machine()
    if status is None or machine is None:
        return ""
    return f"{machine} {status[_START_TIME]}"


def process_text(identifier: str) -> str:
    """Returns two lines by which `has_ended` knows this process.

    Args:
      identifier: one word, of what the process holds.
    """
    return f"process {os.getpid()} on {socket.gethostname()}\n{identifier} {identity()}\n"


def has_ended(text: str) -> bool | None:
    """Whether a process has certainly ended.

    None for processes of other machines and containers, of which nothing is known here.

    Args:
      text: its `process_text`.
    """
    match = _IDENTITY.match(text)
    if match is None:
        return None
    process_id, host, boot, container, start_time = match.groups()
    # Copies of a virtual machine have the same boot, but mostly names of their own.
    if host != socket.gethostname() or f"{boot} {container}" != _machine():
        return None
    try:
        os.kill(int(process_id), 0)  # Sends nothing.
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # It is another user's.
        pass
    status = _status(int(process_id))
    if status is None:  # Hidden from this user, or ended just now.
        return None
    return status[_STATE] in _ENDED_STATES or status[_START_TIME] != start_time


def _machine() -> str | None:
    """Returns the boot of this machine and the PID namespace; None where there is no `/proc`."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    return f"{boot} {container}"


def _status(process_id: int) -> list[str] | None:
    """Returns the fields of `/proc/PID/stat` after the name of the command."""
    try:
        with open(f"/proc/{process_id}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None
