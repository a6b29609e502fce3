"""One writer for each directory."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files import locks
from official.xlnet.files.locks import LOCK_FILE, only_writer

HOLD = """
import sys
from official.xlnet.files.locks import only_writer
with only_writer(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock of a directory until its input ends."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "d")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process


def test_the_second_writer_is_told_of_the_first(other, tmp_path):
    with pytest.raises(DataError) as error, only_writer(str(tmp_path / "d")):
        pass
    assert f"process {other.pid} on {socket.gethostname()} is writing" in str(error.value)
    assert os.listdir(tmp_path / "d") == [LOCK_FILE]


def test_the_lock_of_a_killed_process_is_taken_over(other, tmp_path):
    other.kill()
    other.wait(60)
    assert os.path.exists(tmp_path / "d" / LOCK_FILE)
    with only_writer(str(tmp_path / "d")):
        owner = json.loads((tmp_path / "d" / LOCK_FILE).read_text())
        assert owner["pid"] == os.getpid()
    assert not os.path.exists(tmp_path / "d" / LOCK_FILE)


def test_a_process_of_the_same_number_is_another(tmp_path):
    (tmp_path / LOCK_FILE).write_text(
        json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": "1"})
    )
    with only_writer(str(tmp_path)):
        pass


@pytest.mark.parametrize("content", ["", "[1]", '{"host": "elsewhere", "pid": 1, "started": "7"}'])
def test_what_cannot_be_known_to_be_stale_is_left(content, tmp_path):
    (tmp_path / LOCK_FILE).write_text(content)
    with pytest.raises(DataError, match=r"remove .*\.lock"), only_writer(str(tmp_path)):
        pass
    assert (tmp_path / LOCK_FILE).read_text() == content


def test_file_systems_without_hard_links(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(1, "no")))
    with only_writer(str(tmp_path)):
        with pytest.raises(DataError), only_writer(str(tmp_path)):
            pass
        assert os.listdir(tmp_path) == [LOCK_FILE]
    assert os.listdir(tmp_path) == []


def test_a_new_directory_in_which_nothing_is_written_goes_again(tmp_path):
    with pytest.raises(ZeroDivisionError), only_writer(str(tmp_path / "new")):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    with only_writer(str(tmp_path / "new")):
        (tmp_path / "new" / "file").touch()
    assert os.listdir(tmp_path / "new") == ["file"]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    left = [f"config.yaml.{'0a' * 16}.tmp", f"ckpt-3.json.{'ff' * 16}.tmp"]
    kept = ["a.tmp", f"{'0a' * 16}", f"b.{'0A' * 16}.tmp"]
    for name in left + kept:
        (tmp_path / name).touch()
    with only_writer(str(tmp_path)):
        assert sorted(os.listdir(tmp_path)) == sorted([LOCK_FILE, *kept])


def test_workers_other_than_the_chief_hold_nothing(tmp_path):
    with only_writer(str(tmp_path / "d"), is_writer=False):
        assert not os.path.exists(tmp_path / "d")


def test_four_at_once_write_one_after_the_other(tmp_path):
    """Each adds 1 to a number if it gets the lock, and tries again if it does not."""
    program = (
        "import sys, time\n"
        "from official.xlnet.errors import DataError\n"
        "from official.xlnet.files.locks import only_writer\n"
        "for _ in range(5):\n"
        "    while True:\n"
        "        try:\n"
        "            with only_writer(sys.argv[1]):\n"
        "                n = int(open(sys.argv[2]).read())\n"
        "                time.sleep(0.002)\n"
        "                open(sys.argv[2], 'w').write(str(n + 1))\n"
        "            break\n"
        "        except DataError:\n"
        "            time.sleep(0.003)\n"
    )
    (tmp_path / "n").write_text("0")
    command = [sys.executable, "-c", program, str(tmp_path / "d"), str(tmp_path / "n")]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    assert (tmp_path / "n").read_text() == "20"


def test_a_zombie_has_ended(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    while locks._started(process.pid):
        time.sleep(0.05)
    process.wait()
