"""How a run has ended stands in its directory, until it goes on."""

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from official.xlnet.errors import (
    ConfigError,
    DivergedError,
    PeerLostError,
    PreemptedError,
    StoppedError,
)
from official.xlnet.files.locks import only_writer, process_identity
from official.xlnet.training.run_end import END_FILE, RunEnd, end_set_aside, read_end, recorded_end


def end_of_run(directory, error=None, is_chief=True):
    """Ends a run at step 7, by an error or without one."""
    try:
        with recorded_end(str(directory), lambda: 7, is_chief):
            assert read_end(str(directory)) is None  # The run goes on.
            if error is not None:
                raise error
    except BaseException as raised:
        assert raised is error
    return read_end(str(directory))


@pytest.mark.parametrize(
    ("error", "how", "message", "is_resumed"),
    [
        (None, "completed", "", False),
        (DivergedError("step 7: got nan"), "diverged", "step 7: got nan", False),
        (ValueError("a bug"), "failed", "a bug", False),
        (StoppedError("by Ctrl-C"), "interrupted", "", False),
        (PreemptedError("at step 7"), "preempted", "", True),
        (SystemExit(143), "preempted", "", True),
        (SystemExit(1), "failed", "1", False),
        (PeerLostError("worker 1"), "lost a worker", "", True),
    ],
)
def test_ends(error, how, message, is_resumed, tmp_path):
    (tmp_path / END_FILE).write_text('{"step": 3, "how": "preempted", "message": ""}')
    end = end_of_run(tmp_path, error)
    assert end == RunEnd(7, how, message)
    assert end.is_resumed == is_resumed


@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("is_chief", [True, False])
@pytest.mark.parametrize("error", [None, ConfigError("changed settings"), StoppedError("Ctrl-C")])
def test_a_former_end_is_not_seen_from_the_start_of_a_call(error, is_chief, begins, tmp_path):
    """It comes back if the call takes no step; else the new end stands in its place."""
    directory, text = str(tmp_path), '{"step": 3, "how": "completed", "message": ""}'
    (tmp_path / END_FILE).write_text(text)
    with contextlib.suppress(ConfigError, StoppedError), end_set_aside(directory):
        assert read_end(directory) is None  # While data are read, too.
        if begins:
            end_of_run(tmp_path, error, is_chief)
        elif error is not None:
            raise error
    if not begins:
        assert (tmp_path / END_FILE).read_text() == text
    elif is_chief:
        assert read_end(directory).step == 7
    else:
        assert read_end(directory) is None
    assert os.listdir(tmp_path) == [END_FILE] * (is_chief or not begins)


FORMER = '{"step": 3, "how": "completed", "message": ""}'
KILLED = """
import os, signal, sys
from official.xlnet.training.run_end import end_set_aside, recorded_end

with end_set_aside(sys.argv[1]):
    if sys.argv[2] == "steps":
        with recorded_end(sys.argv[1], lambda: 5, True):
            os.kill(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_call(directory, place):
    command = [sys.executable, "-c", KILLED, str(directory), place]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_call_that_is_killed_before_its_first_step_keeps_the_former_end(tmp_path):
    """For followers, and for the next call, which gives the record its name back."""
    (tmp_path / END_FILE).write_text(FORMER)
    for _ in range(2):
        kill_call(tmp_path, "data")
        assert not (tmp_path / END_FILE).exists()
        assert read_end(str(tmp_path)) == RunEnd(3, "completed")
    with end_set_aside(str(tmp_path)):
        assert read_end(str(tmp_path)) is None
    assert os.listdir(tmp_path) == [END_FILE]
    assert (tmp_path / END_FILE).read_text() == FORMER
    kill_call(tmp_path, "steps")
    assert read_end(str(tmp_path)) is None and not os.listdir(tmp_path)


@pytest.mark.parametrize("known", [True, False, None])
@pytest.mark.parametrize("begins", [True, False])
def test_a_record_that_another_process_has_set_aside(known, begins, tmp_path, monkeypatch):
    """It is left to a process that runs, and taken over from one of another machine, too."""
    directory, when = str(tmp_path), 1_700_000_000
    (tmp_path / END_FILE).write_text(FORMER)
    os.utime(tmp_path / END_FILE, (when, when))
    with end_set_aside(directory):
        assert os.listdir(tmp_path) == [".end.json"]
        assert (tmp_path / ".end.json").stat().st_mtime == when
        left = (tmp_path / ".end.json").read_bytes()
    (tmp_path / END_FILE).unlink()
    (tmp_path / ".end.json").write_bytes(left)
    os.utime(tmp_path / ".end.json", (when, when))
    monkeypatch.setattr(process_identity, "has_ended", lambda text: known)
    assert read_end(directory) == (RunEnd(3, "completed") if known else None)
    with end_set_aside(directory):
        if begins:
            end_of_run(tmp_path)
    if begins:
        assert read_end(directory) == RunEnd(7, "completed")
    elif known is False:
        assert (tmp_path / ".end.json").read_bytes() == left
    else:
        assert (tmp_path / END_FILE).read_text() == FORMER
        assert (tmp_path / END_FILE).stat().st_mtime == when
    assert len(os.listdir(tmp_path)) == 1


def test_a_damaged_record_is_kept_and_one_that_is_set_aside_counts_as_missing(tmp_path):
    (tmp_path / ".end.json").write_bytes(b'{"process"')
    assert read_end(str(tmp_path)) is None
    with end_set_aside(str(tmp_path)):
        pass
    (tmp_path / END_FILE).write_bytes(b"{\xff")
    with end_set_aside(str(tmp_path)):
        assert read_end(str(tmp_path)) is None
    assert (tmp_path / END_FILE).read_text() == "{\ufffd"


def test_a_new_run_has_no_former_end(tmp_path):
    with end_set_aside(str(tmp_path / "new")):
        pass
    assert not os.listdir(tmp_path)


def test_only_the_chief_writes(tmp_path):
    assert end_of_run(tmp_path, is_chief=False) is None


def test_nothing_is_written_into_another_directory(tmp_path):
    """The one of the run was moved; the error that says so is that of the run."""
    model = tmp_path / "model"
    with (
        pytest.raises(Exception, match="moved or removed"),
        only_writer(str(model)),
        recorded_end(str(model), lambda: 7, True),
    ):
        model.rename(tmp_path / "moved")
        model.mkdir()
        raise ValueError("moved or removed")
    assert not model.exists()  # It was empty.
