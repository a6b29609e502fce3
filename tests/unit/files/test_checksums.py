"""Checksums of a folder, by hand and by `sha256sum`."""

import hashlib
import shutil
import subprocess

import pytest

from official.xlnet.files.checksums import CHECKSUMS_FILE, check_checksums, write_checksums
from tests.helpers.compare import assert_refused

FILES = {"a.pb": b"one", "assets.extra/b": b"two", "variables/c d": b"three"}


@pytest.fixture
def folder(tmp_path):
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    write_checksums(str(tmp_path))
    return tmp_path


def test_the_format_is_that_of_sha256sum(folder):
    lines = (folder / CHECKSUMS_FILE).read_text().splitlines()
    assert lines == [f"{hashlib.sha256(data).hexdigest()}  {path}" for path, data in FILES.items()]
    check_checksums(str(folder))
    if shutil.which("sha256sum"):
        command = ["sha256sum", "--check", "--quiet", CHECKSUMS_FILE]
        subprocess.run(command, cwd=folder, check=True)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("variables/c d", b"threE", r"c d: expected SHA-256 [0-9a-f]{12}… \(as in .* again"),
        ("variables/c d", None, "c d: expected SHA-256 .*, got no file"),
        (CHECKSUMS_FILE, b"", "expected checksums, got nothing"),
        (CHECKSUMS_FILE, b"\xff", "utf-8"),
        (CHECKSUMS_FILE, b"0 a\n", "line 1 is damaged: expected a checksum and a path"),
    ],
)
def test_what_changed_is_noticed(folder, file, content, message):
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    assert_refused(message, check_checksums, str(folder))
