"""Checksums of a folder, by hand and by `sha256sum`."""

import hashlib
import shutil
import subprocess

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files.checksums import CHECKSUMS_FILE, check_checksums, write_checksums


@pytest.fixture
def folder(tmp_path):
    for path, text in {"a.pb": "one", "assets.extra/b": "two", "variables/c d": "three"}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    write_checksums(str(tmp_path))
    return tmp_path


def test_the_format_is_that_of_sha256sum(folder):
    lines = (folder / CHECKSUMS_FILE).read_text().splitlines()
    expected = {"a.pb": b"one", "assets.extra/b": b"two", "variables/c d": b"three"}
    assert lines == [f"{hashlib.sha256(text).hexdigest()}  {p}" for p, text in expected.items()]
    check_checksums(str(folder))
    if shutil.which("sha256sum"):
        command = ["sha256sum", "--check", "--quiet", CHECKSUMS_FILE]
        subprocess.run(command, cwd=folder, check=True)


def test_a_changed_and_a_missing_file_are_noticed(folder):
    (folder / "variables/c d").write_text("threE")
    with pytest.raises(DataError, match=r"c d: expected SHA-256 [0-9a-f]{12}… \(as in .* again"):
        check_checksums(str(folder))
    (folder / "variables/c d").unlink()
    with pytest.raises(DataError, match=r"c d: expected a file, as in .*, got none"):
        check_checksums(str(folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected checksums, got nothing"),
        (b"\xff", "utf-8"),
        (b"0 a\n", "line 1 is damaged: expected a checksum and a path"),
    ],
)
def test_damaged_checksums(folder, content, message):
    (folder / CHECKSUMS_FILE).write_bytes(content)
    with pytest.raises(DataError, match=message):
        check_checksums(str(folder))
