"""What any file system answers: a disk, one that a test registers, and those of fsspec."""

import os

import pytest

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.locks import leases, only_writer

TEXT = b"first\nsecond\r\n\xc3\xa4third"
FILES = ("a/x.txt", "a/y.txt", "a/b/z.txt", "a/b/[1].txt")


def write_files(root):
    """Writes `FILES` to a directory."""
    for number, name in enumerate(FILES):
        file_system.make_dirs(os.path.dirname(f"{root}/{name}"))
        with atomic_write(f"{root}/{name}") as file:
            file.write(TEXT * (number + 1))


def assert_names_are_answered(root):
    assert file_system.exists(f"{root}/a") and file_system.is_dir(f"{root}/a")
    assert file_system.is_file(f"{root}/a/x.txt") and not file_system.is_dir(f"{root}/a/x.txt")
    assert not file_system.exists(f"{root}/nothing")
    assert file_system.size(f"{root}/a/y.txt") == 2 * len(TEXT)
    assert sorted(file_system.names(f"{root}/a")) == ["b", "x.txt", "y.txt"]
    for missing in (file_system.size, file_system.names, file_system.remove, file_system.open):
        with pytest.raises(FileNotFoundError):
            missing(f"{root}/nothing")
    for pattern, names in {
        "a/*.txt": "xy",
        "**/?.txt": "xyz",
        "nothing*": "",
        "a/b/z*": "z",
    }.items():
        found = sorted(file_system.glob(f"{root}/{pattern}"))
        assert sorted(os.path.basename(path) for path in found) == [f"{x}.txt" for x in names]
    assert file_system.read_bytes(found[0]) == TEXT * 3


def assert_files_are_found(root):
    """Entries have what a file has, and a name with special characters is that of a file."""
    for pattern, names in {
        "a/*.txt": ["x.txt", "y.txt"],
        "a/b/[1].txt": ["[1].txt"],
        "a": [],
        "a/b/*": ["[1].txt", "z.txt"],
        "nothing": [],
        "nothing*": [],
    }.items():
        entries = sorted(file_system.find(f"{root}/{pattern}"), key=lambda entry: entry.path)
        assert [os.path.basename(entry.path) for entry in entries] == names, pattern
        for entry in entries:
            assert entry.size == file_system.size(entry.path)
            with file_system.open_entry(entry) as file:
                assert file.read() == file_system.read_bytes(entry.path)
            with file_system.open_entry(entry, buffering=16) as file:
                assert file.read(5) == b"first"


def assert_parts_are_read(root):
    path = f"{root}/a/b/z.txt"
    with file_system.open(path, "rb") as file:
        assert file.read(5) == b"first" and file.tell() == 5
        file.seek(len(TEXT))
        assert file.read() == TEXT * 2 and file.read() == b""
    with file_system.open(path, "rb", buffering=0) as file:
        file.seek(6)
        assert file.read(6) == b"second"
    with file_system.open(path, encoding="utf-8") as file:
        assert file.readlines()[:3] == ["first\n", "second\n", "äthirdfirst\n"]


def assert_files_are_replaced_whole(root):
    path = f"{root}/a/x.txt"
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"half")
        raise RuntimeError
    before = file_system.version(path)
    with atomic_write(path) as file:
        file.write(b"whole")
        assert file_system.read_bytes(path) == TEXT
    assert file_system.read_bytes(path) == b"whole" and file_system.version(path) != before
    assert sorted(file_system.names(f"{root}/a")) == ["b", "x.txt", "y.txt"]


def assert_one_writer(root, monkeypatch):
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.2)
    second = only_writer(f"{root}/out")
    with (
        only_writer(f"{root}/out"),
        pytest.raises(DataError, match="is writing there; wait"),
        second,
    ):
        pass
    with only_writer(f"{root}/out"):  # It was given back.
        pass
    assert not file_system.exists(f"{root}/out/.lock")
