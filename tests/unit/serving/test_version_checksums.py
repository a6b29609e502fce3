"""Checksums of a folder, by hand and by `sha256sum`."""

import hashlib
import shutil
import subprocess

from official.xlnet.serving.version_checksums import CHECKSUMS_FILE, has_checksums, write_checksums

FILES = {"a.pb": b"one", "assets.extra/b": b"two", "variables/c d": b"three"}


def test_the_format_is_that_of_sha256sum(tmp_path):
    for path, content in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    write_checksums(str(tmp_path))
    lines = (tmp_path / CHECKSUMS_FILE).read_text().splitlines()
    assert lines == [f"{hashlib.sha256(data).hexdigest()}  {path}" for path, data in FILES.items()]
    assert has_checksums(str(tmp_path))
    if shutil.which("sha256sum"):
        command = ["sha256sum", "--check", "--quiet", CHECKSUMS_FILE]
        subprocess.run(command, cwd=tmp_path, check=True)
    (tmp_path / "a.pb").write_bytes(b"oNe")
    assert not has_checksums(str(tmp_path))
    if shutil.which("sha256sum"):
        assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode
