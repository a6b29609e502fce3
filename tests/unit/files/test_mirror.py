"""What of a local directory is in a bucket, and in which order it gets there."""

import os
import time

import pytest

from official.xlnet.files import file_system, mirror
from official.xlnet.files.mirror import Mirror, NotUploadedError
from tests.helpers.file_systems.flaky import FlakyFileSystem

URL = "flaky://bucket/model"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    FlakyFileSystem.reset()
    monkeypatch.setattr(file_system, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(file_system, "_LONGEST_PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(mirror, "PASS_SECONDS", 0.05)


@pytest.fixture
def uploads(monkeypatch):
    """Names of the files that were uploaded and removed, in order."""
    done = []
    upload, remove = file_system.upload, file_system.remove

    def record(function, sign, url, *arguments):
        function(*arguments, url)
        done.append(sign + url.removeprefix(f"{URL}/"))

    monkeypatch.setattr(file_system, "upload", lambda path, url: record(upload, "+", url, path))
    monkeypatch.setattr(file_system, "remove", lambda url: record(remove, "-", url))
    return done


def write(path, name, content=b"x", age=None):
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    (path / name).write_bytes(content)
    if age is not None:
        os.utime(path / name, ns=(10**18 - age, 10**18 - age))


def in_bucket():
    return sorted(file_system.tree(URL)) if file_system.is_dir(URL) else []


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_files_arrive_in_the_order_in_which_they_were_completed(tmp_path, uploads):
    with Mirror(URL, str(tmp_path), with_content=True) as copy:
        copy._stop.set()  # One pass, at the end.
        write(tmp_path, "ckpt-2.json", age=5)
        write(tmp_path, "ckpt-2.data", age=9)
        write(tmp_path, "a.jsonl", age=1)
        write(tmp_path, "1/saved_model.pb", age=8)
        write(tmp_path, "ckpt-1.json", age=11)
        write(tmp_path, "ckpt-1.index", age=11)  # In one tick of the clock with its record.
    assert uploads == [
        *("+ckpt-1.index", "+ckpt-1.json", "+ckpt-2.data", "+ckpt-2.json", "+a.jsonl"),
        "+1/saved_model.pb",
    ]


def test_what_was_removed_is_removed_after_the_uploads_records_first(tmp_path, uploads):
    for name in ("ckpt-1.data", "ckpt-1.json", "kept"):
        write(tmp_path / "before", name)
    with Mirror(URL, str(tmp_path / "before"), with_content=True) as copy:
        copy._uploaded.clear()
    uploads.clear()
    with Mirror(URL, str(tmp_path / "after"), with_content=True) as copy:
        copy._stop.set()
        assert (tmp_path / "after/ckpt-1.data").read_bytes() == b"x"
        write(tmp_path / "after", "ckpt-2.data")
        for name in ("ckpt-1.data", "ckpt-1.json"):
            (tmp_path / "after" / name).unlink()
    assert uploads == ["+ckpt-2.data", "-ckpt-1.json", "-ckpt-1.data"]
    assert in_bucket() == ["ckpt-2.data", "kept"]


def test_names_that_leave_the_directory_are_not_copied(tmp_path):
    for name in ("../../evil", "good"):
        FlakyFileSystem().pipe_file(f"/bucket/model/{name}", b"x")
    with Mirror(URL, str(tmp_path / "a/b"), with_content=True):
        assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["good"]


def test_a_command_goes_on_while_the_bucket_is_lost(tmp_path):
    with Mirror(URL, str(tmp_path), with_content=True):
        write(tmp_path, "first")
        wait_until(lambda: in_bucket() == ["first"])
        FlakyFileSystem.is_lost = True
        write(tmp_path, "second")
        time.sleep(0.6)  # Longer than one call is patient.
        FlakyFileSystem.is_lost = False
        wait_until(lambda: in_bucket() == ["first", "second"])
        write(tmp_path, "third")
    assert in_bucket() == ["first", "second", "third"]


def test_a_bucket_that_stays_lost_is_one_error_and_the_files_are_kept(tmp_path):
    with (
        pytest.raises(NotUploadedError, match=rf"{URL} could not be written: .*kept in {tmp_path}"),
        Mirror(URL, str(tmp_path), with_content=True),
    ):
        write(tmp_path, "first")
        FlakyFileSystem.is_lost = True
    assert (tmp_path / "first").exists()
