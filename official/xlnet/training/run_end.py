"""The record of how a run has ended: `end.json` in its output directory.

`evaluate --follow` reads it. A run that goes on, or was killed, has none.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import signal
from collections.abc import Callable, Iterator

from official.xlnet.errors import DataError, DivergedError, PeerLostError, PreemptedError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import parse_json, read_json, write_json
from official.xlnet.files.locks import require_in_place
from official.xlnet.files.schema import conform

END_FILE = "end.json"
_ASIDE_FILE = ".end.json"  # While a call may resume the run; see `end_set_aside`.

_directories_set_aside: set[str] = set()  # Of this process, before the first step.

# After these, launchers run the same command again.
PREEMPTED, LOST_A_WORKER = "preempted", "lost a worker"


@dataclasses.dataclass(frozen=True)
class RunEnd:
    """How a run has ended.

    Attributes:
      step: its last step.
      how: `completed`, also where the call was of fewer steps or minutes than the configuration;
        `interrupted`, `preempted`, `lost a worker`, `diverged` or `failed`.
      message: the message of the error that it diverged or failed with.
    """

    step: int
    how: str
    message: str = ""

    @property
    def is_resumed(self) -> bool:
        """Whether a launcher runs the same command again."""
        return self.how in (PREEMPTED, LOST_A_WORKER)


@dataclasses.dataclass(frozen=True)
class _SetAside:
    """A record that a call has set aside, as it is on disk.

    Attributes:
      process: `process_text` of the call.
      end: content of the record.
    """

    process: str
    end: str


@contextlib.contextmanager
def end_set_aside(directory: str) -> Iterator[None]:
    """Context manager around a call that may resume a run, from before its data are read.

    `evaluate --follow` would take the record of an earlier call for the end of the run. It is
    renamed, and gets its name back if the call ends without a step: if it is refused, or none is
    left. If the call is killed before its first step, the record is found under the other name: by
    `read_end`, and by the next call.

    Args:
      directory: output directory of the run.
    """
    try:
        end = _set_aside(directory)
    except OSError:  # The directory cannot be written, as its lock will say.
        end = None
    if end is None:
        yield
        return
    _directories_set_aside.add(directory)
    try:
        yield
    finally:
        if directory in _directories_set_aside:
            _directories_set_aside.remove(directory)
            _put_back(directory, end)


def _set_aside(directory: str) -> str | None:
    """Renames the record of a run; returns its content, None if there is none.

    Raises:
      OSError: the directory cannot be written.
    """
    path, aside = _paths(directory)
    if not (os.path.exists(path) or os.path.exists(aside)):
        return None
    from official.xlnet.files.locks.process_identity import has_ended, process_text

    if os.path.exists(path):
        status, end = os.stat(path), pathlib.Path(path).read_bytes().decode(errors="replace")
    else:
        former = _read_aside(aside)
        if former is None or has_ended(former.process) is False:  # By another worker of this run.
            return None
        status, end = os.stat(aside), former.end
    write_json(aside, dataclasses.asdict(_SetAside(process_text("end"), end)))
    _set_time(aside, status)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return end


def _put_back(directory: str, end: str) -> None:
    """Gives the record of a run its name back, with the time at which it was written."""
    path, aside = _paths(directory)
    with contextlib.suppress(FileNotFoundError):  # Another worker was first.
        status = os.stat(aside)
        write_bytes(path, end.encode())
        _set_time(path, status)
        os.unlink(aside)


def _paths(directory: str) -> tuple[str, str]:
    """The record of a run's end, and its path while it is set aside."""
    return os.path.join(directory, END_FILE), os.path.join(directory, _ASIDE_FILE)


def _set_time(path: str, status: os.stat_result) -> None:
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _remove_records(directory: str) -> None:
    for path in _paths(directory):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


@contextlib.contextmanager
def recorded_end(directory: str, get_step: Callable[[], int], is_chief: bool) -> Iterator[None]:
    """Context manager around the steps of a run, which records how they end.

    Args:
      directory: output directory of the run.
      get_step: returns its last step.
      is_chief: whether this process writes the record.
    """
    if is_chief or directory in _directories_set_aside:
        _remove_records(directory)
    _directories_set_aside.discard(directory)
    if not is_chief:
        yield
        return
    path, _ = _paths(directory)
    try:
        yield
    except BaseException as error:
        end = _end_by(error, get_step())
        # The directory may be another one meanwhile, or its disk full: the error says so.
        with contextlib.suppress(DataError, OSError):
            require_in_place(directory)
            write_json(path, dataclasses.asdict(end))
        raise
    write_json(path, dataclasses.asdict(RunEnd(get_step(), "completed")))


def read_end(directory: str) -> RunEnd | None:
    """Returns how the run in a directory has ended; None if it goes on, or was killed.

    The record that a killed call has set aside counts, where it is known that the process has
    ended: on the same machine.

    Args:
      directory: its output directory, or the URL.
    """
    path, aside = _paths(directory)
    with contextlib.suppress(FileNotFoundError):
        return read_json(path, RunEnd)
    former = _read_aside(aside)
    if former is None:
        return None
    from official.xlnet.files.locks.process_identity import has_ended

    if not has_ended(former.process):
        return None
    return conform(parse_json(former.end, aside), RunEnd, aside)


def _read_aside(aside: str) -> _SetAside | None:
    """Returns a record that was set aside; None if there is none, or it is damaged."""
    try:
        return read_json(aside, _SetAside)
    except (FileNotFoundError, DataError):
        return None


def _end_by(error: BaseException, step: int) -> RunEnd:
    # Before the first step, SIGTERM ends the process by this status.
    is_terminated = isinstance(error, SystemExit) and error.code == 128 + signal.SIGTERM
    if is_terminated or isinstance(error, PreemptedError):
        return RunEnd(step, PREEMPTED)
    if isinstance(error, PeerLostError):
        return RunEnd(step, LOST_A_WORKER)
    if isinstance(error, KeyboardInterrupt):
        return RunEnd(step, "interrupted")
    how = "diverged" if isinstance(error, DivergedError) else "failed"
    return RunEnd(step, how, str(error))
