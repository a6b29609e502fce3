"""Answers that a later call goes on with, which removes nothing of others; lines as they come."""

import collections
import json
import os
import subprocess
import sys

import pytest

from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.text_files import Answers, WrongRow, batched
from official.xlnet.errors import DataError, require_data
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
        (b'{"a": 1}\n{"a": [2]}', [{"a": 1}, {"a": [2]}], ""),
        (b'\xef\xbb\xbf{"a": 1}\n\n{"a": 3}', [{"a": 1}, None, {"a": 3}], "2 is not valid JSON"),
        (b'{"a": 1}\n[2]\n{}\n', [{"a": 1}, None, {}], "2: expected an object, got [2]"),
        (b"a\nb\n\xfc\nc", ["a", "b", None, "c"], "3: expected UTF-8"),
        (b"\xfc\nc", [None, "c"], "1: expected UTF-8"),
        (b"", [], ""),
    ],
)
def test_lines_are_objects_if_the_first_one_is(lines, rows, message):
    """A line that cannot be read is an error in its place, and the next ones are read."""
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, check=True)
    found = [row for line in done.stdout.decode().splitlines() for row in eval(line)]
    for row, expected in zip(found, rows, strict=True):
        if expected is None:
            assert isinstance(row, WrongRow) and not row.columns
            assert f"standard input, line {message}" in row.error
        else:
            assert row == expected


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_a_wrong_row_of_a_stream_has_an_error_in_its_place(size):
    """Whether it is found when it is read or when it is answered."""
    rows = [3, WrongRow({}, "not read"), 5, -1, 7, WrongRow({"id": 3}, "no text"), -2]
    counts = collections.Counter()

    def answer(chunk):
        for row in chunk:
            counts["begun"] += 1
            require_data(row > 0, "the row", "a positive number", row)
        return [row**2 for row in chunk]

    work = Answers(batched(rows, size), answer, counts)
    found = []
    with work.resuming(None, None) as answered:
        for chunk, answers in answered:
            found += [row.answer() for row in chunk] if answers is None else answers
    assert [x if isinstance(x, int) else x["error"].partition(":")[0] for x in found] == [
        *(9, "not read", 25, "the row", 49, "no text", "the row")
    ]
    assert found[5]["id"] == 3 and counts["begun"] == work.done == 3
    assert work.counted() == {"errors": 4}
    of_file = Answers([[3], [-1]], answer, counts, noun="rows")
    with pytest.raises(DataError, match="a positive number"), of_file.resuming(None, None) as rest:
        list(rest)
