"""How far a run is, on a terminal, in a notebook and in a file."""

import contextlib
import io
import os
import pty
import re
import sys
import termios

import pytest

from official.xlnet.runtime import progress
from official.xlnet.runtime.progress import Progress, minutes_and_seconds, progress_bar


@pytest.fixture
def terminal(monkeypatch):
    """A stream to a terminal of a width, and the lines and states of bars it has shown."""

    def opened(columns):
        read, write = pty.openpty()
        termios.tcsetwinsize(write, (24 if columns else 0, columns))
        stream = os.fdopen(write, "w")
        monkeypatch.setattr(sys, "stderr", stream)

        def lines():
            stream.close()
            content = b""
            with contextlib.suppress(OSError):  # Linux ends a terminal with EIO.
                while part := os.read(read, 1 << 12):
                    content += part
            text = content.decode()
            return [line.rstrip() for line in re.split(r"[\r\n]+", text) if line.strip()]

        return stream, lines

    return opened


class Cell(io.StringIO):
    __module__ = "ipykernel.iostream"


def run(stream, last, monkeypatch):
    """A step a second; what is kept has a line of its own."""
    shown = Progress(stream)
    for second in (*range(1, last + 1), last + 40):
        monkeypatch.setattr(progress.time, "monotonic", lambda now=100.0 + second: now)
        shown.show(f"step {second}", second / (last + 40), is_last=second == last)
        if second == last:
            shown.keep("accuracy 0.5")
    shown.close()


FILE = ["step 1", "step 31", "step 61", "step 65", "accuracy 0.5", "step 105"]
BAR = ["2%|", "5%|", "7%|", "accuracy 0.5", "100%|"]


def test_a_file_gets_lines_now_and_then(monkeypatch):
    stream = io.StringIO()
    run(stream, 65, monkeypatch)
    assert stream.getvalue().splitlines() == FILE


@pytest.mark.parametrize("columns, expected", [(0, FILE), (40, BAR), (90, BAR)])
def test_a_terminal_gets_a_bar_of_its_width(columns, expected, terminal, monkeypatch):
    stream, lines = terminal(columns)
    run(stream, 65 if columns == 0 else 3, monkeypatch)
    shown = list(dict.fromkeys(lines()))
    if columns:
        assert all(len(line) <= columns for line in shown)
        assert max(map(len, shown)) > columns - 5
        assert shown[-1].endswith("| step 43")
    begins = [line.split("%|")[0].strip() + "%|" if "%|" in line else line for line in shown]
    assert list(dict.fromkeys(begins)) == expected


def test_a_cell_gets_a_bar_and_kept_lines_stand(monkeypatch):
    stream = Cell()
    run(stream, 2, monkeypatch)
    lines = [line.split("\r")[-1].rstrip() for line in stream.getvalue().split("\n")]
    kept, last = (line for line in lines if line)
    assert kept == "accuracy 0.5" and re.fullmatch(r"100%\|[█#]+\| step 42", last)


@pytest.mark.parametrize("shown", [True, False])
def test_bars_of_bytes(shown, terminal):
    _, lines = terminal(80)
    with progress_bar(shown, desc="tokens", total=4_000, unit="B") as bar:
        bar.update(4_000)
        assert bar.disable != shown
    if shown:
        assert re.match(r"tokens: 100%\|[█#]+\| 4.00k/4.00k .*B/s", lines()[-1])


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (125.4, "2:05"), (7200, "120:00")],
)
def test_durations(seconds, text):
    assert minutes_and_seconds(seconds) == text
