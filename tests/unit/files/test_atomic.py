"""Where output is no regular file: pipes, devices and links."""

import contextlib
import errno
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from official.xlnet.data.result_files import vector_file
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write, write_bytes
from official.xlnet.files.locks import only_writer
from official.xlnet.files.new_folder import files_together, new_folder


@pytest.mark.parametrize(("ending", "size"), [("", 3), (".npy", 128 + 24)])
def test_pipes_are_written_to(tmp_path, ending, size):
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    if ending:
        rows = [{"text": "a"}, {"text": "b"}]
        with vector_file(str(path), rows, width=3) as add:
            add(rows, np.ones([2, 3], np.float32))
    else:
        with atomic_write(str(path)) as file:
            file.write(b"new")
    reader.join(30)
    assert len(got[0]) == size
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("to_file", [True, False])
def test_standard_output_by_its_name(tmp_path, to_file):
    program = (
        "from official.xlnet.files.atomic import atomic_write\n"
        "with atomic_write('/dev/stdout') as file: file.write(b'rows')\n"
    )
    with open(tmp_path / "out", "wb") as out:
        stdout = out if to_file else subprocess.PIPE
        done = subprocess.run([sys.executable, "-c", program], stdout=stdout, check=True)
    assert ((tmp_path / "out").read_bytes() if to_file else done.stdout) == b"rows"
    assert os.path.islink("/dev/stdout")


def test_a_new_folder_may_be_there_if_it_is_empty(tmp_path):
    for name in ("new", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with new_folder(str(tmp_path / name)) as folder:
            open(os.path.join(folder, "x"), "w").close()
        assert os.listdir(tmp_path / name) == ["x"]
    (tmp_path / "file").touch()
    with (
        pytest.raises(DataError, match="expected a new or an empty folder, got a file"),
        new_folder(str(tmp_path / "file")),
    ):
        pass


def test_a_folder_with_the_same_content_stays_and_any_other_is_refused(tmp_path):
    def write(content, name="a/x"):
        with new_folder(str(tmp_path / "folder")) as folder:
            (path := pathlib.Path(folder, name)).parent.mkdir()
            path.write_bytes(content)
            pathlib.Path(folder, "y").touch()

    write(b"one")
    before = [path.stat() for path in sorted(tmp_path.rglob("*"))]
    write(b"one")
    for wrong in ((b"two",), (b"one", "a/z"), (b"one", "b/x")):
        with pytest.raises(DataError, match="with the same content, got one with other files"):
            write(*wrong)
    assert [(x.st_ino, x.st_mtime_ns) for x in before[1:]] == [
        (x.st_ino, x.st_mtime_ns) for x in map(os.stat, sorted(tmp_path.rglob("*"))[1:])
    ]
    (tmp_path / "folder/more").touch()
    with pytest.raises(DataError, match="with other files"):
        write(b"one")


WRITE = """
import signal, sys
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.new_folder import new_folder
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # Under `nohup` it is ignored, here as well.
with atomic_write(sys.argv[1] + "/file") as file, new_folder(sys.argv[1] + "/folder") as folder:
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM", "SIGHUP", None])
def test_temporary_files_of_killed_processes_are_removed_and_others_are_left(tmp_path, signal_name):
    """Whatever is written beside them, by this process or another one."""
    command = [sys.executable, "-c", WRITE, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"begun\n"
        with only_writer(str(tmp_path)):
            write_bytes(str(tmp_path / "other"), b"")
        assert sum(name.endswith(".tmp") for name in os.listdir(tmp_path)) == 2
        if signal_name:
            process.send_signal(signal.Signals[signal_name])
        process.communicate(b"", timeout=60)
    write_bytes(str(tmp_path / "other"), b"")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "other"][2 * bool(signal_name) :]


MOUNTED = """
mount --bind "$1/volume" "$1/folder" && mount --bind "$1/a" "$1/file" || exit 77
exec "$2" - "$1" <<'end'
import os, sys
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.new_folder import new_folder
os.chdir(sys.argv[1])
with atomic_write("file") as file:
    file.write(b"rows")
with new_folder("folder") as folder:
    for name in ("b", "a", "c"):
        with atomic_write(os.path.join(folder, name)) as file:
            file.write(name.encode())
end
"""


@pytest.mark.parametrize("code", [errno.EBUSY, errno.EXDEV])
def test_a_file_that_cannot_be_replaced_is_overwritten(code, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("before, and longer")

    def refuse(*paths):
        raise OSError(code, os.strerror(code), *paths[:1])

    monkeypatch.setattr(os, "replace", refuse)
    with atomic_write(str(tmp_path / "file")) as file:
        file.write(b"after")
    assert (tmp_path / "file").read_text() == "after" and os.listdir(tmp_path) == ["file"]


def test_an_output_may_be_a_mount_point(tmp_path):
    """A volume of a container, and a file that is mounted there: neither can be replaced."""
    for name in ("volume", "volume/lost+found", "folder"):
        (tmp_path / name).mkdir()
    (tmp_path / "a").write_text("before, and longer")
    (tmp_path / "file").touch()
    script = [*("sh", "-c", MOUNTED, "sh"), str(tmp_path), sys.executable]
    unshare = shutil.which("unshare") or "false"
    done = subprocess.run([unshare, "-rm", *script], capture_output=True, text=True)
    if done.returncode in (1, 77) and "Traceback" not in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert not done.returncode, done.stderr
    assert (tmp_path / "a").read_text() == "rows"
    assert sorted(os.listdir(tmp_path / "volume")) == ["a", "b", "c", "lost+found"]


def test_of_the_files_of_a_folder_that_is_there_the_last_one_appears_last(tmp_path, monkeypatch):
    order, rename = [], os.rename
    monkeypatch.setattr(os, "rename", lambda old, new: (order.append(new), rename(old, new)))
    with new_folder(str(tmp_path)) as folder:
        for number, name in enumerate(("b", "a", "c")):
            path = os.path.join(folder, name)
            open(path, "w").close()
            os.utime(path, ns=(number, number))
    assert order == [str(tmp_path / name) for name in ("b", "a", "c")]


class KilledError(BaseException):
    """Ends a command at once."""


@pytest.mark.parametrize("killed_at", range(6))
def test_files_that_belong_together_are_never_of_two_commands(killed_at, tmp_path, monkeypatch):
    """The last one, without which nothing reads the others, is missing while they are replaced."""
    names = ["a", "last", "z"]

    def write(version):
        with files_together(str(tmp_path), last="last") as folder:
            for name in names:
                pathlib.Path(folder, name).write_text(version)

    (tmp_path / "other").write_text("other")
    write("old")
    calls = []

    def counted(function):
        def call(path, *arguments):
            calls.append(path)
            if len(calls) == killed_at:
                raise KilledError
            return function(path, *arguments)

        return call

    with monkeypatch.context() as patch, contextlib.suppress(KilledError):
        for name in ("remove", "replace"):
            patch.setattr(os, name, counted(getattr(os, name)))
        write("new")
    found = {name: (tmp_path / name).read_text() for name in names if (tmp_path / name).exists()}
    if "last" in found:
        assert found == dict.fromkeys(names, "old" if killed_at == 1 else "new")
    assert ("last" in found) == (killed_at not in (2, 3, 4))
    assert sorted(os.listdir(tmp_path)) == sorted([*found, "other"])
