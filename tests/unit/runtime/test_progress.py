"""How far a run is, on a terminal and in a file."""

import io

import pytest

from official.xlnet.runtime import progress
from official.xlnet.runtime.progress import Progress, minutes_and_seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Cell(io.StringIO):
    __module__ = "ipykernel.iostream"


@pytest.mark.parametrize(
    ("kind", "last", "expected"),
    [
        (io.StringIO, 65, "step 1\nstep 31\nstep 61\nstep 65\naccuracy 0.5\nstep 105\n"),
        (
            Terminal,
            3,
            "".join(f"\r\x1b[K{text}" for text in ("step 1", "step 2", "step 3", "accuracy 0.5\n"))
            + "\r\x1b[Kstep 43\n",
        ),
        (
            Cell,
            2,
            "".join(f"\r{text:100}" for text in ("step 1", "step 2", "accuracy 0.5"))
            + f"\n\r{'step 42':100}\n",
        ),
    ],
)
def test_a_file_gets_lines_now_and_then_and_a_terminal_one_that_is_rewritten(
    kind, last, expected, monkeypatch
):
    """A step a second; what is kept has a line of its own."""
    stream = kind()
    shown = Progress(stream)
    for second in (*range(1, last + 1), last + 40):
        monkeypatch.setattr(progress.time, "monotonic", lambda now=100.0 + second: now)
        shown.show(f"step {second}", is_last=second == last)
        if second == last:
            shown.keep("accuracy 0.5")
    shown.close()
    assert stream.getvalue() == expected


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (125.4, "2:05"), (7200, "120:00")],
)
def test_durations(seconds, text):
    assert minutes_and_seconds(seconds) == text
