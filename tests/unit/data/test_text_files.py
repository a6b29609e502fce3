"""Answers that a later call goes on with, which removes nothing of others; lines as they come."""

import collections
import json
import os
import subprocess
import sys

import pytest

from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.text_files import Answers, batched
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write


def write(path, number, identity, fail=None, meanwhile=None):
    """Writes the squares of numbers, two at a time; the numbers of all rows and of kept ones."""
    counts = collections.Counter()

    def answer(chunk):
        if fail in chunk:
            raise OSError(28, "No space left on device")
        if meanwhile and 3 in chunk:
            meanwhile()
        counts.update(tokens=len(chunk))
        return [n * n for n in chunk]

    work = Answers(batched(range(number), 2), answer, counts)
    with work.resuming(str(path), identity) as answered:
        pairs = (pair for chunk in answered for pair in zip(*chunk, strict=True))
        write_json_lines(str(path), ({"n": n, "square": square} for n, square in pairs))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows == [{"n": n, "square": n * n} for n in range(number)]
    assert counts["tokens"] == work.done == number  # Also of rows that were kept.
    return work.done, work.kept


def partials(folder):
    return sorted(
        name for name in os.listdir(folder) if name[0] == "." and name.endswith("partial")
    )


@pytest.mark.parametrize("other", ["out", "out.2", "out.2.partial", "out.0123456789abcdef"])
def test_two_calls_side_by_side_leave_each_other_alone(tmp_path, other):
    def another():
        assert write(tmp_path / other, 5, "b") == (5, 0) and len(partials(tmp_path)) == 1
        with pytest.raises(DataError, match="another process is writing there"):
            write(tmp_path / "out", 7, "a")

    assert write(tmp_path / "out", 7, "a", meanwhile=another) == (7, 0)
    assert not partials(tmp_path)


def test_an_error_keeps_the_rows_and_another_call_sweeps_them(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(OSError, match="No space left"):
        write(path, 7, "a", fail=0)
    assert not partials(tmp_path) and not path.exists()  # There is nothing to keep.
    with pytest.raises(OSError, match="No space left"):
        write(path, 7, "a", fail=5)
    (partial,) = partials(tmp_path)
    with open(tmp_path / partial, "ab") as file:
        file.write(b"[[16, 2")  # A line that was being written.
    assert write(path, 7, "a") == (7, 4)
    with pytest.raises(OSError, match="No space left"):
        write(path, 7, "b", fail=5)
    assert write(path, 7, "c") == (7, 0) and not partials(tmp_path)


def test_a_replaced_file_keeps_its_mode(tmp_path):
    for mode in (0o600, 0o644):
        (tmp_path / "out").touch()
        (tmp_path / "out").chmod(mode)
        with atomic_write(str(tmp_path / "out")) as file:
            file.write(b"rows")
        assert (tmp_path / "out").stat().st_mode & 0o777 == mode


READ = """
from official.xlnet.data.text_files import incoming_rows
for rows in incoming_rows(2):
    print(rows, flush=True)
"""


def test_lines_are_read_as_they_come():
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", READ]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:

        def answers(data, number):
            process.stdin.write(data)
            return [eval(process.stdout.readline()) for _ in range(number)]

        assert answers("\ufeffZürich\r\n\n".encode(), 1) == [["Zürich", ""]]
        process.stdin.write(b"half a")
        assert answers(b" line\n1\n2\nrest", 2) == [["half a line", "1"], ["2"]]
        out, said = process.communicate(b" of it")
        assert eval(out) == ["rest of it"]
        assert said == b"standard input: each line is read as a text\n"


@pytest.mark.parametrize(
    ("lines", "rows", "message"),
    [
        (b'{"a": 1}\n{"a": [2]}', "[{'a': 1}]\n[{'a': [2]}]\n", ""),
        (b'\xef\xbb\xbf{"a": 1}\n\n', "[{'a': 1}]\n", "standard input, line 2 is not valid JSON"),
        (b'{"a": 1}\n[2]\n', "[{'a': 1}]\n", "standard input, line 2: expected an object, got [2]"),
        (b"a\nb\n\xfc\n", "['a', 'b']\n", "standard input, line 3: expected UTF-8"),
        (b"", "", ""),
    ],
)
def test_lines_are_objects_if_the_first_one_is(lines, rows, message):
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, input=lines, capture_output=True)
    assert (done.stdout.decode(), bool(done.returncode)) == (rows, bool(message))
    assert message in done.stderr.decode()
