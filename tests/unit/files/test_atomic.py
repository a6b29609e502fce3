"""Where output is no regular file: pipes, devices and links."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from official.xlnet.data.result_files import vector_file
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write, new_folder


@pytest.mark.parametrize(("ending", "size"), [("", 3), (".npy", 128 + 24), (".jsonl", None)])
def test_pipes_are_written_to(tmp_path, ending, size):
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    if ending:
        with vector_file(str(path), num_rows=2, width=3) as add:
            add([{"text": "a"}, {"text": "b"}], np.ones([2, 3], np.float32))
    else:
        with atomic_write(str(path)) as file:
            file.write(b"new")
    reader.join(30)
    assert len(got[0]) == (size or len(got[0])) > 0
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
    for name in ("new", "file"):
        with (
            pytest.raises(DataError, match="expected a new or an empty folder"),
            new_folder(str(tmp_path / name)),
        ):
            pass
