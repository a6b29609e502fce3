"""An object store in the memory of this process, which counts requests instead of sending them.

Its versions are conditions of a request, as those of Google Cloud Storage.
"""

import collections
import contextlib
import pathlib

import fsspec
from fsspec.spec import AbstractFileSystem

SCHEME, BUCKET = "counted", "store"
_PAGE = 1_000  # Files of one answer to a request for a listing.


class CountedStore(AbstractFileSystem):
    """The file system of `counted://store/…`.

    Attributes:
      contents: {name: bytes}.
      folders: names of those that have or had files.
      requests: {(kind, first folder in the bucket): number}; the kinds are those of HTTP, and LIST.
    """

    protocol = SCHEME
    contents: dict[str, bytes] = {}
    folders: set[str] = set()
    requests: collections.Counter = collections.Counter()

    def _count(self, kind, path, number=1):
        folder = path.partition("/")[2].partition("/")[0]
        self.requests[kind, folder] += number

    def _file(self, name):
        size = len(self.contents[name])
        return {"name": name, "type": "file", "size": size, "generation": "1"}

    def info(self, path, **_):
        name = self._strip_protocol(path)
        self._count("HEAD", name)
        if name in self.contents:
            return self._file(name)
        if name in self.folders:
            return {"name": name, "type": "directory", "size": 0}
        raise FileNotFoundError(name)

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **_):
        folder = self._strip_protocol(path).rstrip("/") + "/"
        names = sorted(name for name in self.contents if name.startswith(folder))
        self._count("LIST", folder, 1 + len(names) // _PAGE)
        files = {name: self._file(name) for name in names}
        return files if detail else names

    def ls(self, path, detail=True, **_):
        folder = self._strip_protocol(path).rstrip("/") + "/"
        entries = {}
        for name, file in self.find(folder, detail=True).items():
            head, slash, _ = name[len(folder) :].partition("/")
            directory = {"name": folder + head, "type": "directory", "size": 0}
            entries.setdefault(head, directory if slash else file)
        return [*entries.values()] if detail else [entry["name"] for entry in entries.values()]

    def ukey(self, path):
        return self.info(path).get("generation")

    def cat_file(self, path, start=None, end=None, generation="1", **_):
        assert generation == "1"
        name = self._strip_protocol(path)
        self._count("GET", name)
        try:
            return self.contents[name][start:end]
        except KeyError:
            raise FileNotFoundError(name) from None

    def pipe_file(self, path, value, mode="overwrite", **_):
        name = self._strip_protocol(path)
        self._count("PUT", name)
        self.contents[name] = bytes(value)
        while name := name.rpartition("/")[0]:
            self.folders.add(name)

    def put_file(self, lpath, rpath, **_):
        self.pipe_file(rpath, pathlib.Path(lpath).read_bytes())

    def rm_file(self, path):
        name = self._strip_protocol(path)
        self._count("DELETE", name)
        del self.contents[name]

    def rm(self, path, recursive=False, maxdepth=None):
        for name in self.find(path):
            self.rm_file(name)


@contextlib.contextmanager
def counted_store():
    """Context manager that yields the class, whose attributes are the contents and the counts."""
    fsspec.register_implementation(SCHEME, CountedStore, clobber=True)
    try:
        yield CountedStore
    finally:
        CountedStore.contents.clear()
        CountedStore.folders.clear()
        CountedStore.requests.clear()
