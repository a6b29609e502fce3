"""Files are replaced whole; links are followed; pipes and devices are written to."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from official.xlnet.data.vector_files import vector_file
from official.xlnet.files.atomic import atomic_write


def write(path, content=b"new"):
    with atomic_write(str(path)) as file:
        file.write(content)


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with atomic_write(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and os.listdir(tmp_path) == ["a"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(str(path)) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("ending", ["", ".npy", ".jsonl"])
def test_pipes_are_written_to(tmp_path, ending):
    path = tmp_path / f"pipe{ending}"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    if ending:
        with vector_file(str(path), num_rows=2, width=3) as add:
            add(["a", "b"], np.ones([2, 3], np.float32))
    else:
        write(path)
    reader.join(30)
    assert len(got[0]) == {"": 3, ".npy": 128 + 24, ".jsonl": len(got[0])}[ending] > 0
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("to_file", [True, False])
def test_standard_output_by_its_name(tmp_path, to_file):
    program = (
        "from official.xlnet.files.atomic import atomic_write\n"
        "with atomic_write('/dev/stdout') as file: file.write(b'rows')\n"
    )
    with open(tmp_path / "out", "wb") as out:
        process = subprocess.run(
            [sys.executable, "-c", program],
            stdout=out if to_file else subprocess.PIPE,
            timeout=60,
            check=True,
        )
    assert ((tmp_path / "out").read_bytes() if to_file else process.stdout) == b"rows"
    assert os.path.islink("/dev/stdout")
