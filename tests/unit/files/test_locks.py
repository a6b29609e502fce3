"""One writer for each directory."""

import json
import os
import socket
import subprocess
import sys

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files import locks
from official.xlnet.files.locks import LOCK_FILE, only_writer

IMPORT = """
import os, sys, time
from official.xlnet.errors import DataError
from official.xlnet.files import locks
from official.xlnet.files.locks import only_writer
"""
HOLD = """
with only_writer(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["local", "network"])
def file_system(request, monkeypatch):
    """Where the kernel locks files for all, and where the file itself is the lock."""
    monkeypatch.setattr(locks, "_is_local", lambda _: request.param == "local")
    return request.param


@pytest.fixture
def other(file_system, tmp_path):
    """A process that holds the lock of a directory until its input ends."""
    is_local = f"locks._is_local = lambda _: {file_system == 'local'}"
    command = [sys.executable, "-c", f"{IMPORT}\n{is_local}\n{HOLD}", str(tmp_path / "d")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process


def test_one_holder_until_it_ends_or_is_killed(other, tmp_path):
    folder = tmp_path / "d"
    message = f"process {other.pid} on {socket.gethostname()} is writing"
    with pytest.raises(DataError, match=message), only_writer(str(folder)):
        pass
    with only_writer(str(folder), is_writer=False):  # As workers that are not the chief do.
        assert os.listdir(folder) == [LOCK_FILE]
    other.kill()
    other.wait(60)
    with only_writer(str(folder)):
        assert json.loads((folder / LOCK_FILE).read_text())["pid"] == os.getpid()
    assert os.listdir(folder) == []


ROUNDS = """
locks._is_local = lambda _: sys.argv[2] == "local"
mark = os.path.join(sys.argv[1], "held")

def hold(number):
    with only_writer(os.path.join(sys.argv[1], "d")):
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        os.unlink(mark)
        if number % 10 == 9 and os.fork() == 0:
            os._exit(0)
        if number % 50 == 49:
            os.kill(os.getpid(), 9)

def work():
    held = 0
    while held < 60:
        try:
            hold(held)
            held += 1
        except DataError:
            time.sleep(0.001)

processes = int(sys.argv[3])
for number in range(processes + 4):
    if number >= 4:
        status = os.wait()[1]
        assert status == 9, status
    if number < processes and os.fork() == 0:
        work()
"""
# Each of the processes, four at a time, is killed in its 50th round.
NUM_ROUNDS = int(os.environ.get("XLNET_LOCK_ROUNDS", "400"))


def test_many_at_once_hold_it_one_after_the_other(file_system, tmp_path):
    """Holders are killed while they hold it; the file `held` is there for one of them at a time."""
    (tmp_path / "d").mkdir()
    arguments = [str(tmp_path), file_system, str(NUM_ROUNDS // 50)]
    done = subprocess.run([sys.executable, "-c", IMPORT + ROUNDS, *arguments], capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
