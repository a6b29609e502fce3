"""Progress output: a line updated in place on terminals and in notebooks, else periodic lines."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

import tqdm

from official.xlnet.files.text import printable_line

_TERMINAL_SECONDS = 0.2  # Minimum time between updates.
_SHORTEST_SECONDS = 1e-9  # Avoids division by zero.
_LINE_SECONDS = 30  # The same if the output is neither.
_NOTEBOOK = ("\r", 100)  # Spaces hide the rest of a longer line before: there are no codes.


class Progress:
    """Displays the progress of a run, with a limited update rate.

    Args:
      stream: text stream to write to, e.g. `sys.stderr`.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        is_notebook = type(stream).__module__.startswith("ipykernel")
        self._before, self._width = _NOTEBOOK if is_notebook else ("\r\x1b[K", 0)
        self._is_terminal = is_notebook or stream.isatty()
        self._shown = -math.inf

    def show(self, text: str, is_last: bool = False) -> None:
        """Displays a status line, which replaces the previous one on a terminal or in a notebook.

        Args:
          text: the status line.
          is_last: whether to display it even if the previous update was too recent.
        """
        now = time.monotonic()
        wait = _TERMINAL_SECONDS if self._is_terminal else _LINE_SECONDS
        if not is_last and now - self._shown < wait:
            return
        self._shown = now
        text = printable_line(text)
        in_place = f"{self._before}{text:{self._width}}"
        self._stream.write(in_place if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def keep(self, text: str) -> None:
        """Displays a line that is not overwritten by later updates."""
        self.show(text, is_last=True)
        self.close()

    def close(self) -> None:
        """Terminates the current line."""
        if self._is_terminal:
            self._stream.write("\n")


@contextlib.contextmanager
def elapsed_time(what: str, interval_seconds: float = 1.0) -> Iterator[None]:
    """Context manager that shows how long its block has been running, on standard error.

    Args:
      what: description of the block.
      interval_seconds: time between two updates; shorter blocks show nothing.
    """
    display, is_over, start = Progress(sys.stderr), threading.Event(), time.monotonic()

    def follow() -> None:
        while not is_over.wait(interval_seconds):
            display.show(f"{what}: {time.monotonic() - start:.0f} s")

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        if time.monotonic() - start > interval_seconds:
            display.keep(f"{what}: {time.monotonic() - start:.0f} s")


def progress_bar(shown: bool, desc: str, total: int, unit: str) -> tqdm.tqdm:
    """A progress bar; it is shown on terminals only.

    Args:
      shown: whether to show it on a terminal.
      desc: description of the items.
      total: the number to reach.
      unit: unit of the number.
    """
    return tqdm.tqdm(
        desc=desc, total=total, unit=unit, unit_scale=True, disable=None if shown else True
    )


def per_second(number: int, start: float) -> float:
    """Items per second since `start`, a time of `time.monotonic`."""
    return round(number / max(time.monotonic() - start, _SHORTEST_SECONDS), 1)


def minutes_and_seconds(seconds: float) -> str:
    """Formats a duration in seconds as `minutes:seconds`.

    Example:
      >>> minutes_and_seconds(125.4)
      '2:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"


def interval_passed(interval: int, before: int, step: int) -> bool:
    """Returns whether a multiple of `interval` lies in (before, step].

    Example:
      >>> interval_passed(10, before=18, step=21)
      True
    """
    return step // interval > before // interval
