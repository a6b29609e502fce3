"""How a run has ended stands in its directory, until it goes on."""

import contextlib
import os

import pytest

from official.xlnet.errors import (
    ConfigError,
    DivergedError,
    PeerLostError,
    PreemptedError,
    StoppedError,
)
from official.xlnet.files.locks import only_writer
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
