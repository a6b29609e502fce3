"""Progress output: tqdm's bar on terminals and in notebooks, else periodic lines."""

from __future__ import annotations

import contextlib
import math
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from official.xlnet.files.text import printable_line

if TYPE_CHECKING:
    from tqdm import tqdm

_BAR_SECONDS, _LINE_SECONDS = 0.2, 8.0  # Minimum time between updates.
_SILENT_SECONDS = 2.0  # A terminal says what it waits for after this time.
_SILENT_SHARE = 0.1  # Of its time so far, a command may show nothing: days do not fill a log.


class Progress:
    """Displays the progress of a run, with a limited update rate.

    Args:
      stream: text stream to write to, e.g. `sys.stderr`. Nothing is shown if it is closed (None) or
        cannot be written, which never ends a run.

    Attributes:
      last_shown: time at which any of them displayed something.
    """

    last_shown: ClassVar[float] = -math.inf

    def __init__(self, stream: TextIO | None):
        self._stream = stream
        self._has_bar = _takes_bar(stream)
        self._bar: tqdm | None = None
        self._shown = -math.inf

    def show(self, text: str, share: float | None = None) -> None:
        """Displays a status, which replaces the previous one on a terminal or in a notebook.

        Args:
          text: the status, in one line.
          share: completed share of the run, for the bar; the status at 1 is always displayed.
            Default: unknown, without a bar.
        """
        now = time.monotonic()
        if share != 1 and now - self._shown < (_BAR_SECONDS if self._has_bar else _LINE_SECONDS):
            return
        self._shown = Progress.last_shown = now
        if not self._has_bar:
            self._write(text)
            return
        text = printable_line(text)
        if self._bar is None:
            self._bar = _bar(
                file=self._stream,
                bar_format="{desc}" if share is None else "{percentage:3.0f}%|{bar}| {desc}",
                dynamic_ncols=True,
                total=1,
                initial=share or 0,
                desc=text,
            )
        self._bar.n, self._bar.desc = share or 0, text
        self._bar.refresh()

    def log_line(self, text: str) -> None:
        """Displays a line that is not overwritten, in place of the bar."""
        if self._bar is not None:
            self._bar.leave = False
            Progress.close(self)  # The bar, and nothing that a subclass has open.
        self._write(text)

    def _write(self, text: str) -> None:
        Progress.last_shown = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # The disk of the log is full; it is closed.
            if self._stream is not None:
                self._stream.write(f"{printable_line(text)}\n")
                self._stream.flush()

    def close(self) -> None:
        """Ends the bar, which stays as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def progress_bar(is_shown: bool, desc: str, total: int, unit: str) -> tqdm:
    """A bar on standard error, if it is a terminal or in a notebook.

    Args:
      is_shown: whether to show it.
      desc: description of the items.
      total: the number to reach.
      unit: unit of the number.
    """
    is_hidden = not (is_shown and _takes_bar(sys.stderr))
    return _bar(disable=is_hidden, desc=desc, total=total, unit=unit, unit_scale=True)


def _bar(**options: Any) -> tqdm:
    """A bar of tqdm, which is imported here: refusals of wrong flags need none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A notebook without `ipywidgets` gets text.
        from tqdm.auto import tqdm
    return tqdm(**options)


def _takes_bar(stream: TextIO | None) -> bool:
    if stream is None or stream.closed:
        return False
    # Where the size of a terminal is unknown, as in some containers, tqdm would show nothing.
    has_size = stream.isatty() and all(os.get_terminal_size(stream.fileno()))
    return has_size or type(stream).__module__.startswith("ipykernel")


@contextlib.contextmanager
def elapsed_time(
    what: str | Callable[[], str], interval_seconds: float = 1.0, silence_seconds: float = 0.0
) -> Iterator[None]:
    """Context manager that shows how long its block has been running, on standard error.

    Args:
      what: description of the block, or a function that returns what is done so far.
      interval_seconds: time between two updates; shorter blocks show nothing.
      silence_seconds: if positive, it has a line only where nothing else was shown for this long,
        or for a tenth of the time so far, if that is longer.
    """
    display, is_over, start = Progress(sys.stderr), threading.Event(), time.monotonic()
    show = display.log_line if silence_seconds else display.show

    def text() -> str:
        return f"{what if isinstance(what, str) else what()}: {time.monotonic() - start:.0f} s"

    def follow() -> None:
        while not is_over.wait(interval_seconds):
            now = time.monotonic()
            longest = max(silence_seconds, _SILENT_SHARE * (now - start)) if silence_seconds else 0
            if now - max(start, Progress.last_shown) >= longest:
                show(text())

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        if time.monotonic() - start > interval_seconds and not silence_seconds:
            display.log_line(text())


@contextlib.contextmanager
def counting(is_shown: bool, desc: str, total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Context manager of a block that counts; yields the function that adds to the count.

    On a terminal and in a notebook it shows a bar, and elsewhere, as in a log, a line every few
    seconds.

    Args:
      is_shown: whether to show anything.
      desc: description of the items.
      total: the number to reach.
      unit: unit of the number.
    """
    num_done = 0

    def add(number: int) -> None:
        nonlocal num_done
        num_done += number
        bar.update(number)

    def text() -> str:
        return f"{desc}: {num_done / max(total, 1):.0%} of {total:,} {unit.strip()}"

    is_log = is_shown and not _takes_bar(sys.stderr)
    lines = elapsed_time(text, _LINE_SECONDS) if is_log else contextlib.nullcontext()
    with progress_bar(is_shown, desc, total, unit) as bar, lines:
        yield add


def waiting(what: str) -> contextlib.AbstractContextManager[None]:
    """`elapsed_time` of a block that may take seconds without a word; in a log, more of them.

    Args:
      what: description of the block.
    """
    is_terminal = sys.stderr is not None and sys.stderr.isatty() and _takes_bar(sys.stderr)
    return elapsed_time(what, _SILENT_SECONDS if is_terminal else _LINE_SECONDS)


@contextlib.contextmanager
def loading_tensorflow() -> Iterator[None]:
    """`waiting` for an import of TensorFlow, whose draws leave Python's random state as it was."""
    state = random.getstate()
    try:
        with waiting("loading TensorFlow"):
            yield
    finally:
        random.setstate(state)


def per_second(num_items: int, start: float) -> float:
    """Items per second since `start`, a time of `time.monotonic`."""
    return round(num_items / max(time.monotonic() - start, 1e-9), 1)  # Not by zero.


def minutes_and_seconds(seconds: float) -> str:
    """Formats a duration in seconds as `minutes:seconds`.

    Example:
      >>> minutes_and_seconds(125.4)
      '2:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
