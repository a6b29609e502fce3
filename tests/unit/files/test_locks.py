"""One writer for each directory."""

import json
import os
import socket
import subprocess
import sys
import time
import uuid

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


def test_a_process_of_the_same_number_is_another(file_system, tmp_path):
    (tmp_path / LOCK_FILE).write_text(
        json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "started": "1"})
    )
    with only_writer(str(tmp_path)):
        pass


def here(**changes):
    """The content of a lock of a process of this host that has ended."""
    return json.dumps(locks._this_process() | {"pid": 2**30, "started": "7"} | changes)


CONTENTS = {
    "empty": ("", True, False),
    "no object": ("[1]", True, False),
    "of another host": (here(host="elsewhere"), True, False),
    "of another machine": (here(host="elsewhere", boot="elsewhere"), False, False),
    "of an earlier version elsewhere": (
        '{"host": "elsewhere", "pid": 1, "started": "7"}',
        False,
        False,
    ),
    "of another boot": (here(boot="elsewhere"), True, False),
    "of another container": (here(namespace="pid:[1]"), True, False),
    "of a process that has ended": (here(), True, True),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_locks_that_nobody_may_hold(file_system, name, tmp_path):
    """The kernel knows; elsewhere what cannot be known is left alone."""
    content, is_taken_here, is_taken_elsewhere = CONTENTS[name]
    (tmp_path / LOCK_FILE).write_text(content)
    if is_taken_here if file_system == "local" else is_taken_elsewhere:
        with only_writer(str(tmp_path)):
            pass
        assert os.listdir(tmp_path) == []
        return
    with pytest.raises(DataError, match=r"remove .*\.lock"), only_writer(str(tmp_path)):
        pass
    assert (tmp_path / LOCK_FILE).read_text() == content


@pytest.mark.parametrize("is_removed", [True, False])
def test_one_process_removes_the_lock_of_one_that_has_ended(is_removed, tmp_path, monkeypatch):
    """It holds a lock of its own meanwhile, which is removed in the same way if it is killed."""
    monkeypatch.setattr(locks, "_is_local", lambda _: False)
    monkeypatch.setattr(locks.uuid, "uuid5", lambda *_: uuid.UUID(int=7))
    claimant = here() if is_removed else json.dumps(locks._this_process())
    (tmp_path / LOCK_FILE).write_text(here(lock="of the ended process"))
    (tmp_path / f"{LOCK_FILE}.{7:032x}").write_text(claimant)
    if is_removed:
        with only_writer(str(tmp_path)):
            pass
        assert os.listdir(tmp_path) == []
        return
    with pytest.raises(DataError, match="another process is writing"), only_writer(str(tmp_path)):
        pass
    assert (tmp_path / LOCK_FILE).read_text() == here(lock="of the ended process")


def test_who_takes_a_lock_for_an_ended_one_leaves_it_where_it_is(tmp_path, monkeypatch):
    """Its holder, who removes it at any moment, would not find it elsewhere."""
    monkeypatch.setattr(locks, "_is_local", lambda _: False)
    with only_writer(str(tmp_path)):
        content = (tmp_path / LOCK_FILE).read_text()
        monkeypatch.delattr(os, "rename")
        locks._remove_ended(str(tmp_path / LOCK_FILE), json.loads(here()))
        assert (tmp_path / LOCK_FILE).read_text() == content
        assert os.listdir(tmp_path) == [LOCK_FILE]
    assert os.listdir(tmp_path) == []


def test_a_running_process_of_an_earlier_version_holds_its_lock(file_system, tmp_path):
    old = {key: locks._this_process()[key] for key in ("host", "pid", "started")}
    (tmp_path / LOCK_FILE).write_text(json.dumps(old))
    with pytest.raises(DataError, match=f"process {os.getpid()} on"), only_writer(str(tmp_path)):
        pass
    assert json.loads((tmp_path / LOCK_FILE).read_text()) == old


@pytest.mark.parametrize("kind", ["a link that leads nowhere", "a link", "a FIFO", "a directory"])
def test_a_lock_that_is_no_file_ends_in_a_sentence(kind, tmp_path):
    path = tmp_path / LOCK_FILE
    {
        "a link that leads nowhere": lambda: path.symlink_to(tmp_path / "none"),
        "a link": lambda: path.symlink_to("/dev/zero"),
        "a FIFO": lambda: os.mkfifo(path),
        "a directory": path.mkdir,
    }[kind]()
    with pytest.raises((DataError, IsADirectoryError)), only_writer(str(tmp_path)):
        pass
    assert os.listdir(tmp_path) == [LOCK_FILE]


def test_the_file_system_of_a_path(tmp_path):
    assert locks._is_local(str(tmp_path / "new" / "folder"))
    assert not locks._is_local("/proc/self")


def test_file_systems_without_hard_links(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "_is_local", lambda _: False)
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


def test_a_zombie_has_ended(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    while locks._started(process.pid):
        time.sleep(0.05)
    process.wait()
