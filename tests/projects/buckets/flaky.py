"""A file system in memory, `flaky://`, whose calls fail when a test says so."""

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

SCHEME = "flaky"


class FlakyFileSystem(MemoryFileSystem):
    """Fails in `num_faults` calls, or with `error` while it is not None; counts its calls."""

    protocol = SCHEME
    store = {}
    pseudo_dirs = [""]

    num_faults = 0
    error = None
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
        cls.num_faults, cls.error = 0, None

    def _may_fail(self):
        cls = type(self)
        cls.calls += 1
        if cls.error:
            raise cls.error
        if cls.num_faults:
            cls.num_faults -= 1
            raise TimeoutError("no answer")


def _faulty(name):
    """A method that fails when a test says so."""
    method = getattr(MemoryFileSystem, name)

    def call(self, *arguments, **options):
        self._may_fail()
        return method(self, *arguments, **options)

    return call


for _name in ("info", "find", "cat_file", "pipe_file", "put_file", "rm_file"):
    setattr(FlakyFileSystem, _name, _faulty(_name))
fsspec.register_implementation(SCHEME, FlakyFileSystem, clobber=True)
