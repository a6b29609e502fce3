"""Files of rows that a later call goes on with: nothing of another call is removed."""

import json
import os

import pytest

from official.xlnet.data.text_files import write_resumed
from official.xlnet.files.atomic import atomic_write


def rows(number, fail=None):
    def after(kept):
        for n in range(kept, number):
            if n == fail:
                raise OSError(28, "No space left on device")
            yield {"n": n}

    return after


def partials(folder):
    return sorted(
        name for name in os.listdir(folder) if name[0] == "." and name.endswith("partial")
    )


@pytest.mark.parametrize("other", ["out", "out.2", "out.2.partial", "out.0123456789abcdef"])
def test_two_calls_side_by_side_leave_each_other_alone(tmp_path, other):
    def with_another(kept):
        yield from rows(3)(kept)
        written = write_resumed(str(tmp_path / other), rows(5), "b", 1)
        assert written == (5, 0) and len(partials(tmp_path)) == 1
        yield from rows(7)(3)

    assert write_resumed(str(tmp_path / "out"), with_another, "a", 1) == (7, 0)
    lines = (tmp_path / "out").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [*range(7)] and not partials(tmp_path)


def test_an_error_keeps_the_rows_and_another_call_sweeps_them(tmp_path):
    path = str(tmp_path / "out")
    with pytest.raises(OSError, match="No space left"):
        write_resumed(path, rows(7, fail=5), "a", 2)
    assert len(partials(tmp_path)) == 1
    assert write_resumed(path, rows(7), "a", 2) == (7, 4)
    with pytest.raises(OSError, match="No space left"):
        write_resumed(path, rows(7, fail=5), "b", 2)
    assert write_resumed(path, rows(7), "c", 2) == (7, 0) and not partials(tmp_path)


def test_a_replaced_file_keeps_its_mode(tmp_path):
    for mode in (0o600, 0o644):
        (tmp_path / "out").touch()
        (tmp_path / "out").chmod(mode)
        with atomic_write(str(tmp_path / "out")) as file:
            file.write(b"rows")
        assert (tmp_path / "out").stat().st_mode & 0o777 == mode
