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
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.locks import require_in_place

END_FILE = "end.json"

_ends_set_aside: dict[str, bytes] = {}  # Of this process, by directory; see `end_set_aside`.

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


@contextlib.contextmanager
def end_set_aside(directory: str) -> Iterator[None]:
    """Context manager around a call that may resume a run, from before its data are read.

    `evaluate --follow` would take the record of an earlier call for the end of the run. It is
    removed, and written again if the call ends without a step: if it is refused, or none is left.

    Args:
      directory: output directory of the run.
    """
    path = os.path.join(directory, END_FILE)
    try:
        content, status = pathlib.Path(path).read_bytes(), os.stat(path)
        os.unlink(path)
    except OSError:  # There is none, or the directory cannot be written, as its lock will say.
        yield
        return
    _ends_set_aside[directory] = content
    try:
        yield
    finally:
        unchanged = _ends_set_aside.pop(directory, None)
        if unchanged is not None:
            write_bytes(path, unchanged)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextlib.contextmanager
def recorded_end(directory: str, get_step: Callable[[], int], is_chief: bool) -> Iterator[None]:
    """Context manager around the steps of a run, which records how they end.

    Args:
      directory: output directory of the run.
      get_step: returns its last step.
      is_chief: whether this process writes the record.
    """
    _ends_set_aside.pop(directory, None)
    if not is_chief:
        yield
        return
    path = os.path.join(directory, END_FILE)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
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

    Args:
      directory: its output directory, or the URL.
    """
    try:
        return read_json(os.path.join(directory, END_FILE), RunEnd)
    except FileNotFoundError:
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
