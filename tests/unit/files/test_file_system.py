"""The same answers of a disk, of fsspec's and of TensorFlow's file system; faults that pass."""

import os
import subprocess
import sys

import pytest

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.locks import only_writer
from tests.helpers.file_systems.flaky import FlakyFileSystem

TEXT = b"first\nsecond\r\n\xc3\xa4third"
FILES = ("a/x.txt", "a/y.txt", "a/b/z.txt", "a/b/[1].txt")


@pytest.fixture(params=["disk", "memory", "ram", "flaky"])
def root(request, tmp_path):
    """A directory with `FILES`."""
    root = str(tmp_path) if request.param == "disk" else f"{request.param}:/{tmp_path}"
    FlakyFileSystem.reset()
    for number, name in enumerate(FILES):
        file_system.make_dirs(os.path.dirname(f"{root}/{name}"))
        with atomic_write(f"{root}/{name}") as file:
            file.write(TEXT * (number + 1))
    return root


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(file_system, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(file_system, "_LONGEST_PAUSE_SECONDS", 0.05)


def test_what_there_is(root):
    assert file_system.exists(f"{root}/a") and file_system.is_dir(f"{root}/a")
    assert file_system.is_file(f"{root}/a/x.txt") and not file_system.is_dir(f"{root}/a/x.txt")
    assert not file_system.exists(f"{root}/nothing")
    assert file_system.size(f"{root}/a/y.txt") == 2 * len(TEXT)
    assert sorted(file_system.names(f"{root}/a")) == ["b", "x.txt", "y.txt"]
    for missing in (file_system.size, file_system.names, file_system.remove, file_system.open):
        with pytest.raises(FileNotFoundError):
            missing(f"{root}/nothing")


def test_patterns(root):
    def names(pattern):
        return sorted(os.path.basename(path) for path in file_system.glob(f"{root}/{pattern}"))

    assert names("a/*.txt") == ["x.txt", "y.txt"]
    assert names("**/?.txt") == ["x.txt", "y.txt", "z.txt"]
    assert names("nothing*") == []
    (found,) = file_system.glob(f"{root}/a/b/z*")
    assert file_system.read_bytes(found) == TEXT * 3


def test_reading(root):
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


def test_a_failed_write_leaves_the_file_as_it_was(root):
    path = f"{root}/a/x.txt"
    with pytest.raises(RuntimeError), atomic_write(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert file_system.read_bytes(path) == TEXT
    before = file_system.version(path)
    with atomic_write(path) as file:
        file.write(b"whole")
    assert file_system.read_bytes(path) == b"whole"
    assert file_system.version(path) != before


def test_one_writer_for_each_directory(root):
    with (
        only_writer(f"{root}/out"),
        pytest.raises(DataError, match="is writing there; wait"),
        only_writer(f"{root}/out"),
    ):
        pass
    with only_writer(f"{root}/out"):  # It was given back.
        pass
    assert not file_system.exists(f"{root}/out/.lock")


def test_faults_are_tried_again(impatient):
    FlakyFileSystem.reset()
    with atomic_write("flaky://bucket/x") as file:
        file.write(TEXT)
    FlakyFileSystem.num_faults = 2
    assert file_system.read_bytes("flaky://bucket/x") == TEXT
    assert not FlakyFileSystem.num_faults


def test_a_fault_that_stays_is_one_error_with_the_path(impatient):
    FlakyFileSystem.reset()
    FlakyFileSystem.is_lost = True
    with pytest.raises(OSError, match=r"not be reached in \d+ attempts: ConnectionReset") as error:
        file_system.read_bytes("flaky://bucket/x")
    assert error.value.filename == "flaky://bucket/x"
    calls = FlakyFileSystem.calls
    FlakyFileSystem.is_lost = False
    with pytest.raises(FileNotFoundError):  # An answer: asked once.
        file_system.read_bytes("flaky://bucket/x")
    assert FlakyFileSystem.calls == calls + 1


def test_local_paths_import_no_library(tmp_path):
    (tmp_path / "x").write_text("x")
    code = """if True:
        import sys
        from official.xlnet.files import file_system, staging
        assert file_system.open(sys.argv[1]).read() == "x" and file_system.is_file(sys.argv[1])
        assert not {"fsspec", "tenacity", "tensorflow"} & set(sys.modules)
    """
    subprocess.run([sys.executable, "-c", code, tmp_path / "x"], check=True)


@pytest.mark.parametrize(("scheme", "library"), [("s3", "s3fs"), ("gs", "gcsfs")])
def test_a_missing_library_says_what_to_install(scheme, library, monkeypatch):
    import fsspec

    loaded = sys.modules[fsspec.get_filesystem_class.__module__]._registry
    monkeypatch.delitem(loaded, scheme, raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    extra = {"s3": "s3", "gs": "gcs"}[scheme]
    with pytest.raises(ConfigError, match=rf"pip install '\.\[{extra}\]' in its checkout"):
        file_system.exists(f"{scheme}://bucket/x")
