"""The answers of a disk and of a registered file system; local paths import no code for URLs."""

import glob
import io
import os
import pathlib
import re
import subprocess
import sys

import pytest

from official import xlnet
from official.xlnet.errors import ConfigError
from official.xlnet.files import file_system, urls
from official.xlnet.files.urls import FILE_SYSTEMS, local_copy, local_paths, with_urls
from official.xlnet.files.urls.file_systems import FileSystem
from tests.helpers.compare import assert_refused
from tests.helpers.file_systems import answers


class Shelf(FileSystem):
    """Files in memory, by URL: what a package of its own would register."""

    content = {}
    num_writes = 0

    def file_type(self, url):
        if url in self.content:
            return "file"
        return "directory" if self._below(url) else None

    def open(self, url, buffering=-1):
        self._require(url)
        return io.BytesIO(self.content[url][0])

    def version(self, url):
        self._require(url)
        return self.content[url][1]

    def names(self, directory):
        if not self._below(directory):
            raise FileNotFoundError(directory)
        return list({name.split("/")[0] for name in self.tree(directory)})

    def tree(self, directory):
        start = len(directory.rstrip("/")) + 1
        return {url[start:]: len(self.content[url][0]) for url in self._below(directory)}

    def glob(self, pattern):
        parts = re.escape(pattern).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        return [url for url in self.content if re.fullmatch(parts.replace(r"\?", "[^/]"), url)]

    def remove(self, url):
        self._require(url)
        del self.content[url]

    def remove_tree(self, directory):
        for url in self._below(directory):
            del self.content[url]

    def upload(self, local, url):
        self._write(url, pathlib.Path(local).read_bytes())

    def create(self, url, content):
        if url in self.content:
            raise FileExistsError(url)
        self._write(url, content)

    def _write(self, url, content):
        Shelf.num_writes += 1
        self.content[url] = content, Shelf.num_writes

    def _below(self, directory):
        return [url for url in self.content if url.startswith(directory.rstrip("/") + "/")]

    def _require(self, url):
        if url not in self.content:
            raise FileNotFoundError(url)


@pytest.fixture
def shelf(monkeypatch):
    """Registers `shelf://` for a test."""
    monkeypatch.setattr(Shelf, "content", {})
    xlnet.register_file_system("shelf")(Shelf)
    yield
    del FILE_SYSTEMS["shelf"]


@pytest.fixture(params=["disk", "shelf"])
def root(request, tmp_path):
    """A directory with `FILES`."""
    root = str(tmp_path)
    if request.param == "shelf":
        request.getfixturevalue("shelf")
        root = f"shelf:/{tmp_path}"
    answers.write_files(root)
    return root


def test_what_there_is(root):
    answers.assert_names_are_answered(root)


def test_finding(root):
    answers.assert_files_are_found(root)


def test_reading(root):
    answers.assert_parts_are_read(root)


def test_files_are_replaced_whole_or_stay(root):
    answers.assert_files_are_replaced_whole(root)


def test_one_writer_for_each_directory(root, monkeypatch):
    answers.assert_one_writer(root, monkeypatch)


def test_directories_are_removed_with_their_files(root):
    file_system.remove_tree(f"{root}/a")
    file_system.remove_tree(f"{root}/a")
    assert not file_system.exists(f"{root}/a")
    file_system.create(f"{root}/x", b"1")
    file_system.create(f"{root}/x", b"2")
    assert file_system.read_bytes(f"{root}/x") == b"1"


LOCAL = """
import sys
from official import xlnet
from official.xlnet.files import file_system, urls
from official.xlnet.files.locks import only_writer

folder = sys.argv[1]
assert file_system.open(f"{folder}/x").read() == "x" and file_system.is_file(f"{folder}/x")
assert file_system.glob(f"{folder}/*") == [f"{folder}/x"]
arguments = {"path": f"{folder}/x", "output": f"{folder}/y"}
with (
    only_writer(folder),
    urls.local_paths(arguments, {"path": "read", "output": "write"}) as restore,
    urls.local_copy(folder) as copy,
):
    assert copy == folder and restore(urls.with_urls("text")) == "text"
assert not {"fsspec", "tenacity", "tensorflow"} & set(sys.modules)
modules = [name for name in sys.modules if "projects." in name or name.endswith(".leases")]
assert modules == [], modules
"""


def test_local_paths_import_neither_a_library_nor_the_code_for_urls(tmp_path):
    (tmp_path / "x").write_text("x")
    subprocess.run([sys.executable, "-c", LOCAL, tmp_path], check=True)


def test_a_url_that_nothing_handles_is_one_sentence(monkeypatch):
    for table in (FILE_SYSTEMS, urls.LOCAL_COPIES):
        monkeypatch.setattr(table, "modules", {})
        for name in list(table):
            monkeypatch.delitem(table, name)
    message = "shelf://a/b: expected a local path, got a URL; nothing here reads shelf://"
    for function in (file_system.exists, file_system.open, file_system.glob, file_system.remove):
        assert_refused(message, function, "shelf://a/b")
    with pytest.raises(ConfigError, match=message), local_copy("shelf://a/b"):
        pass
    arguments = {"input": ["x", "shelf://a/b"]}
    with pytest.raises(ConfigError, match=message), local_paths(arguments, {"input": "read"}):
        pass
    with local_paths(arguments, {"input": "any"}):  # The function itself takes URLs.
        pass
    assert with_urls("text") == "text"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("shelf://a/b", ["shelf://a/b"]),
        (["x", "shelf://a/b,s3://c", 3], ["shelf://a/b", "s3://c"]),
        ({"shelf://a": 1.0, "x": 2.0}, ["shelf://a"]),
        ("name=shelf://a", ["shelf://a"]),
        ("a/b", []),
        (None, []),
    ],
)
def test_urls_are_found_in_arguments(value, expected):
    assert urls.urls_in(value) == expected


def test_links_in_a_cycle_are_followed_once(tmp_path, monkeypatch):
    """As the library's pattern, but each directory counts once; hidden ones are left out."""
    for name in ("a/b", "a/.hidden", "c d/[e]", "other"):
        (tmp_path / "top" / name).mkdir(parents=True)
    for name in ("x.txt", "a/y.txt", "a/b/z.txt", "a/.hidden/no.txt", "c d/[e]/w.txt"):
        (tmp_path / "top" / name).touch()
    monkeypatch.chdir(tmp_path)
    for pattern in (
        "top/**/*.txt",
        "**/*.txt",
        f"{tmp_path}/**/b/*.txt",
        "top/**",
        "t*/**/**/y.txt",
    ):
        assert {*file_system.glob(pattern)} >= {
            path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)
        }
    (tmp_path / "top/a/b/up").symlink_to(tmp_path / "top")
    (tmp_path / "top/other/up").symlink_to(tmp_path / "top/a")
    (tmp_path / "top/other/self").symlink_to(tmp_path / "top/other")
    found = file_system.glob("top/**/*.txt")
    assert {os.path.realpath(path) for path in found} == {
        str(tmp_path / "top" / name) for name in ("x.txt", "a/y.txt", "a/b/z.txt", "c d/[e]/w.txt")
    }
    assert len(found) == 4
