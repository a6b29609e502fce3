"""How far a run is, on a terminal and in a file."""

import io

import pytest

from official.xlnet.runtime import progress
from official.xlnet.runtime.progress import Progress, minutes_and_seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test sets."""
    times = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: times[0])
    return times


def show_every_second(stream, clock, last):
    shown = Progress(stream)
    for step in range(1, last + 1):
        clock[0] += 1
        shown.show(f"step {step}", is_last=step == last)
    return shown


def test_a_file_gets_a_line_now_and_then_and_the_last_one(clock):
    stream = io.StringIO()
    show_every_second(stream, clock, last=65).close()
    assert stream.getvalue().splitlines() == ["step 1", "step 31", "step 61", "step 65"]


def test_a_terminal_gets_one_line_that_is_rewritten(clock):
    stream = Terminal()
    show_every_second(stream, clock, last=3).close()
    assert stream.getvalue() == "\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[Kstep 3\n"


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_what_is_kept_stays_on_a_line_of_its_own(clock, kind):
    stream = kind()
    shown = show_every_second(stream, clock, last=2)
    shown.keep("accuracy 0.5")
    clock[0] += 40
    shown.show("step 3")
    before, kept, after = [line for line in stream.getvalue().splitlines() if line][-3:]
    assert before.endswith("step 2") and kept.endswith("accuracy 0.5") and after.endswith("step 3")


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (125.4, "2:05"), (7200, "120:00")],
)
def test_durations(seconds, text):
    assert minutes_and_seconds(seconds) == text
