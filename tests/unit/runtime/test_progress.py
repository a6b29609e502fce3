"""How far a run is, on a terminal and in a file."""

import io

import pytest

from official.xlnet.runtime import progress
from official.xlnet.runtime.progress import Progress, minutes_and_seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def show(monkeypatch):
    """Shows steps, one each second; returns the stream and what shows them."""

    def show_every_second(stream, last):
        shown = Progress(stream)
        for second in range(1, last + 1):
            monkeypatch.setattr(progress.time, "monotonic", lambda now=100.0 + second: now)
            shown.show(f"step {second}", is_last=second == last)
        return stream, shown

    return show_every_second


@pytest.mark.parametrize(
    ("stream", "last", "expected"),
    [
        (io.StringIO, 65, "step 1\nstep 31\nstep 61\nstep 65\n"),
        (Terminal, 3, "\r\x1b[Kstep 1\r\x1b[Kstep 2\r\x1b[Kstep 3\n"),
    ],
)
def test_a_file_gets_lines_now_and_then_and_a_terminal_one_that_is_rewritten(
    show, stream, last, expected
):
    stream, shown = show(stream(), last)
    shown.close()
    assert stream.getvalue() == expected


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_what_is_kept_stays_on_a_line_of_its_own(show, kind, monkeypatch):
    stream, shown = show(kind(), 2)
    shown.keep("accuracy 0.5")
    monkeypatch.setattr(progress.time, "monotonic", lambda: 142.0)
    shown.show("step 3")
    before, kept, after = [line for line in stream.getvalue().splitlines() if line][-3:]
    assert before.endswith("step 2") and kept.endswith("accuracy 0.5") and after.endswith("step 3")


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (125.4, "2:05"), (7200, "120:00")],
)
def test_durations(seconds, text):
    assert minutes_and_seconds(seconds) == text
