"""One writer for each directory."""

import concurrent.futures
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files import locks
from official.xlnet.files.locks import (
    LOCK_FILE,
    leases,
    only_writer,
    process_identity,
    require_in_place,
)

RENEWAL, EXPIRY = 0.2, 5
IMPORT = f"""
import os, sys, time
from official.xlnet.errors import DataError
from official.xlnet.files import locks
from official.xlnet.files.locks import leases
from official.xlnet.files.locks import only_writer
leases.RENEWAL_SECONDS, leases.EXPIRY_SECONDS = {RENEWAL}, {EXPIRY}
"""
HOLD = """
with only_writer(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["local", "network"])
def file_system(request, monkeypatch):
    """Where the kernel locks files for all, and where the file is a lease."""
    monkeypatch.setattr(locks, "is_local", lambda _: request.param == "local")
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", RENEWAL)
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", EXPIRY)
    return request.param


@pytest.fixture
def other(file_system, tmp_path):
    """A process that holds the lock of a directory until its input ends."""
    is_local = f"locks.is_local = lambda _: {file_system == 'local'}"
    command = [sys.executable, "-c", f"{IMPORT}\n{is_local}\n{HOLD}", str(tmp_path / "d")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout.readline() == b"held\n"
        yield process


def test_one_holder_until_it_ends_or_is_killed(other, file_system, tmp_path):
    folder = tmp_path / "d"
    who = {"local": "another process", "network": f"process {other.pid} on .*"}[file_system]
    for _ in range(2):  # Renewed in between.
        with pytest.raises(DataError, match=f"{who} is writing there"), only_writer(str(folder)):
            pass
    with only_writer(str(folder), is_writer=False):  # As workers that are not the chief do.
        assert os.listdir(folder) == [LOCK_FILE]
    other.kill()
    other.wait(60)
    with only_writer(str(folder)):
        assert os.listdir(folder) == [LOCK_FILE]
    assert os.listdir(folder) == []


@pytest.mark.parametrize("file_system", ["network"], indirect=True)
def test_a_holder_that_is_told_to_end_gives_its_lease_back(other, tmp_path):
    other.terminate()
    assert other.wait(60) == 128 + signal.SIGTERM
    assert not (tmp_path / "d").exists()  # It made it, and wrote nothing.
    previous = signal.getsignal(signal.SIGTERM)
    with only_writer(str(tmp_path / "d")):  # In this program.
        assert signal.getsignal(signal.SIGTERM) is not previous
    assert signal.getsignal(signal.SIGTERM) is previous is signal.SIG_DFL


@pytest.mark.parametrize("file_system", ["network"], indirect=True)
def test_a_holder_that_stood_still_until_its_lease_was_taken_over_saves_nothing_more(
    other, tmp_path
):
    other.send_signal(signal.SIGSTOP)
    with only_writer(str(tmp_path / "d")):
        other.send_signal(signal.SIGCONT)
        time.sleep(3 * RENEWAL)
        assert other.poll() is None  # Its program goes on, and fails where it would save.
        _, error = other.communicate(b"", timeout=60)
        assert other.returncode == 1 and f"process {os.getpid()} on" in error.decode()
        assert f"process {os.getpid()} on" in (tmp_path / "d" / LOCK_FILE).read_text()


@pytest.mark.parametrize("file_system", ["network"], indirect=True)
def test_a_lease_that_is_not_seen_is_written_anew_and_one_of_another_is_not_replaced(
    file_system, tmp_path
):
    directory, lock = str(tmp_path / "d"), tmp_path / "d" / LOCK_FILE
    with pytest.raises(DataError, match="process 7 on b is writing there"), only_writer(directory):
        lock.unlink()
        time.sleep(3 * RENEWAL)
        require_in_place(directory)
        assert f"process {os.getpid()} on" in lock.read_text()
        other = tmp_path / "other"
        other.write_text("process 7 on b\nid\n")
        other.replace(lock)  # At once: half of a lease is one without a name.
        time.sleep(3 * RENEWAL)
        with pytest.raises(DataError, match="process 7 on b is writing there"):
            require_in_place(directory)
        assert lock.read_text() == "process 7 on b\nid\n"
        lock.unlink()  # The other one has ended: what it wrote stays.
    assert not os.path.exists(lock)


@pytest.mark.parametrize("file_system", ["network"], indirect=True)
@pytest.mark.parametrize("is_reaped", [True, False])
def test_the_lease_of_a_killed_process_of_this_machine_is_taken_over_at_once(
    other, is_reaped, tmp_path, monkeypatch
):
    """A zombie, too: a killed process that its parent has not asked for."""
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 300)
    other.kill()
    if is_reaped:
        other.wait(60)
    else:
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    begun = time.monotonic()
    with only_writer(str(tmp_path / "d")):
        assert time.monotonic() - begun < 15
        assert f"process {os.getpid()} on" in (tmp_path / "d" / LOCK_FILE).read_text()


def lease_text(**changed):
    """A lease of this process, in which some parts are those of another one."""
    boot, container, start_time = process_identity.identity().split()
    parts = {"number": os.getpid(), "boot": boot, "container": container, "time": start_time}
    parts |= {name: value for name, value in changed.items() if name in parts}
    number, *rest = map(str, parts.values())
    host = changed.get("host", socket.gethostname())
    return f"process {number} on {host}\n0123 {' '.join(rest)}\n17.5\n"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_is_known_of_the_holder_of_a_lease():
    """A process has ended if it is of this boot and container and its number is not its own."""
    ended = 4_194_305  # Above the most that Linux gives.
    assert process_identity.has_ended(lease_text(number=ended))
    assert process_identity.has_ended(lease_text(time=7))  # Its number was given to another one.
    running = [
        lease_text(),
        process_identity.process_text("0123"),
        lease_text(number=1, time=process_identity._status(1)[process_identity._START_TIME]),
    ]
    for text in running:
        assert process_identity.has_ended(text) is False, text
    unknown = [
        lease_text(number=ended, boot="another"),
        lease_text(number=ended, host="a copy of this virtual machine"),
        lease_text(number=ended, container="pid:[1]"),
        f"process {ended} on host\n0123\n",  # Of an earlier release.
        f"process {ended} on host\n0123 \n",  # Of a system without /proc.
        "",
    ]
    for text in unknown:
        assert process_identity.has_ended(text) is None, text


@pytest.mark.parametrize("file_system", ["network"], indirect=True)
@pytest.mark.parametrize("lease", ["process 1 on a host that is gone\n", ""])
def test_of_two_that_take_over_the_same_lease_one_holds_it(file_system, tmp_path, lease):
    """An empty one is what a killed process left on a disk from which the folder was copied."""
    (tmp_path / LOCK_FILE).write_text(lease)

    def hold():
        with only_writer(str(tmp_path)):
            time.sleep(5 * RENEWAL)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        errors = [future.exception() for future in [pool.submit(hold) for _ in range(3)]]
    assert [type(error) for error in errors if error] == [DataError] * 2


ROUNDS = """
locks.is_local = lambda _: True
mark = os.path.join(sys.argv[1], "held")

def hold(number):
    with only_writer(os.path.join(sys.argv[1], "d")):
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        os.unlink(mark)
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

processes = int(sys.argv[2])
for number in range(processes + 4):
    if number >= 4:
        status = os.wait()[1]
        assert status == 9, status
    if number < processes and os.fork() == 0:
        work()
"""
# Each of the processes, four at a time, is killed in its 50th round.
NUM_ROUNDS = int(os.environ.get("XLNET_LOCK_ROUNDS", "400"))


def test_many_at_once_hold_it_one_after_the_other(tmp_path):
    """Holders are killed while they hold it; the file `held` is there for one of them at a time."""
    (tmp_path / "d").mkdir()
    arguments = [str(tmp_path), str(NUM_ROUNDS // 50)]
    done = subprocess.run([sys.executable, "-c", IMPORT + ROUNDS, *arguments], capture_output=True)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()


@pytest.mark.parametrize("file_system", ["local"], indirect=True)
def test_the_lock_of_another_directory_of_the_same_name_stays(file_system, tmp_path):
    folder = tmp_path / "d"
    with pytest.raises(DataError, match="got another one; it was moved"), only_writer(str(folder)):
        require_in_place(str(folder))
        with pytest.raises(DataError, match="is writing there"), only_writer(str(folder)):
            pass  # From a callback, say; the first one still holds it.
        folder.rename(tmp_path / "moved")
        folder.mkdir()
        (folder / LOCK_FILE).touch()
    assert os.listdir(folder) == [LOCK_FILE]
    shutil.rmtree(folder)
    with pytest.raises(DataError, match="got none; it was moved"), only_writer(str(folder)):
        shutil.rmtree(folder)  # Nothing is left to give up.
    require_in_place(str(folder))  # No longer held.
