"""A file system in memory, `flaky://`, whose calls fail when a test says so."""

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

SCHEME = "flaky"


class FlakyFileSystem(MemoryFileSystem):
    """Fails in `num_faults` calls, or while `is_lost`; counts its calls."""

    protocol = SCHEME
    store = {}
    pseudo_dirs = [""]

    num_faults = 0
    is_lost = False
    calls = 0

    @classmethod
    def _strip_protocol(cls, path):
        return MemoryFileSystem._strip_protocol(path.removeprefix(f"{SCHEME}://"))

    def unstrip_protocol(self, name):
        return f"{SCHEME}:/{name}"

    @classmethod
    def reset(cls):
        cls.store.clear()
        cls.pseudo_dirs[:] = [""]
        cls.num_faults, cls.is_lost = 0, False

    def _may_fail(self):
        cls = type(self)
        cls.calls += 1
        if cls.is_lost:
            raise ConnectionResetError("the bucket is lost")
        if cls.num_faults:
            cls.num_faults -= 1
            raise TimeoutError("no answer")

    def info(self, path, **options):
        self._may_fail()
        return super().info(path, **options)

    def find(self, path, **options):
        self._may_fail()
        return super().find(path, **options)

    def cat_file(self, path, start=None, end=None, **options):
        self._may_fail()
        return super().cat_file(path, start=start, end=end, **options)

    def pipe_file(self, path, value, mode="overwrite", **options):
        self._may_fail()
        super().pipe_file(path, value, mode=mode, **options)

    def put_file(self, lpath, rpath, **options):
        self._may_fail()
        super().put_file(lpath, rpath, **options)

    def rm_file(self, path):
        self._may_fail()
        super().rm_file(path)


fsspec.register_implementation(SCHEME, FlakyFileSystem, clobber=True)
