"""How far a run is, on a terminal, in a notebook and in a file."""

import contextlib
import io
import os
import pty
import re
import sys
import termios
import time

import pytest

from official.xlnet.runtime import progress
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.runtime.progress import Progress, minutes_and_seconds

LINES = [f"step {n}" for n in range(1, 66, 8)] + ["accuracy 0.5", "step 104", "step 105"]
BAR = ["2%|", "5%|", "7%|", "accuracy 0.5", "98%|", "100%|"]


@pytest.mark.parametrize(
    ("columns", "last", "expected"),
    [(None, 65, LINES), (0, 65, LINES), (40, 3, BAR), (90, 3, BAR)],
)
def test_lines_now_and_then_or_a_bar_of_the_width_of_a_terminal(
    columns, last, expected, monkeypatch
):
    """A step a second; what is kept has a line. A terminal that has no width is like a file."""
    read, write = os.pipe() if columns is None else pty.openpty()
    if columns is not None:
        termios.tcsetwinsize(write, (24 if columns else 0, columns))
    with os.fdopen(write, "w") as stream:
        shown = Progress(stream)
        for second in (*range(1, last + 1), last + 39, last + 40):
            monkeypatch.setattr(progress.time, "monotonic", lambda now=100.0 + second: now)
            shown.show(f"step {second}", second / (last + 40))
            if second == last:
                shown.log_line("accuracy 0.5")
        shown.close()
    content = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal with EIO.
        while part := os.read(read, 1 << 12):
            content += part
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", content.decode()) if line.strip()]
    if columns:
        assert columns - 5 < max(map(len, lines)) <= columns and lines[-1].endswith("| step 43")
    begins = [line.split("%|")[0].strip() + "%|" if "%|" in line else line for line in lines]
    assert list(dict.fromkeys(begins)) == expected


def test_a_cell_of_a_notebook_gets_a_bar():
    stream = type("Cell", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    Progress(stream).show("step 1", 0.5)
    assert stream.getvalue().lstrip("\r").startswith(" 50%|")


@pytest.mark.parametrize("line_seconds", [9.0, 0.05])
def test_a_terminal_says_what_it_waits_for_and_a_file_after_longer(line_seconds, monkeypatch):
    """As the commands do while they import TensorFlow and read a model."""
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.05)
    monkeypatch.setattr(progress, "_LINE_SECONDS", line_seconds)
    said = []
    for read, write in (os.pipe(), pty.openpty()):
        if said:
            termios.tcsetwinsize(write, (24, 80))
        with os.fdopen(write, "w") as stream:
            monkeypatch.setattr(sys, "stderr", stream)
            with progress.waiting("reading the model"):
                time.sleep(0.2)
            with progress.waiting("nothing"):
                pass
        content = b""
        with contextlib.suppress(OSError):
            while part := os.read(read, 1 << 12):
                content += part
        said.append(content.decode())
    assert "reading the model: 0 s" in said[1] and "nothing" not in "".join(said)
    assert bool(said[0]) == (line_seconds < 1)


def test_a_command_is_never_silent_and_says_nothing_where_others_speak(monkeypatch):
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress.elapsed_time("evaluate", 0.05, 0.5):
        for _ in range(80):  # Somebody speaks.
            Progress(log).show("step")
            time.sleep(0.01)
        spoken = set(log.getvalue().splitlines())
        time.sleep(1.4)
    assert spoken == {"step"}
    said = log.getvalue().splitlines()[80:]
    assert 1 <= len(said) <= 2 and re.fullmatch(r"evaluate: [12] s", said[0])


@pytest.mark.parametrize("share, least, most", [(0.1, 3, 9), (1.0, 1, 1)])
def test_lines_of_a_long_command_are_further_apart(share, least, most, monkeypatch):
    monkeypatch.setattr(progress, "_SILENT_SHARE", share)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress.elapsed_time("evaluate", 0.01, 0.05):
        time.sleep(0.5)
    assert least <= len(log.getvalue().splitlines()) <= most


@pytest.mark.parametrize(
    "seconds, text",
    [(0, "0:00"), (59.4, "0:59"), (59.6, "1:00"), (125.4, "2:05"), (7200, "120:00")],
)
def test_durations(seconds, text):
    assert minutes_and_seconds(seconds) == text


def test_a_line_in_place_of_the_bar_leaves_the_history_of_a_run_open(tmp_path, monkeypatch):
    (tmp_path / "logs").mkdir()
    log = RunLog(str(tmp_path), 0, json_log=False)
    monkeypatch.setattr(log, "_stream", io.StringIO())
    monkeypatch.setattr(log, "_has_bar", True)
    for step in (1, 2):
        log.history(step, 0.5)
        log.show(f"step {step}", step / 3)
        log.log_line("evaluated")
    log.close()
    assert [row["step"] for row in read_history(str(tmp_path))] == [1, 2]
