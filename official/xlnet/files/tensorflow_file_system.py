"""TensorFlow's file systems (`tf.io.gfile`), e.g. `ram://`, as a file system of fsspec."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import uuid
from collections.abc import Iterator
from typing import IO, Any

import fsspec

from official.xlnet.errors import ConfigError


class TensorFlowFileSystem(fsspec.AbstractFileSystem):
    """The files of a scheme that TensorFlow knows. Their names are whole URLs.

    Args:
      scheme: the scheme, e.g. `ram`.

    Raises:
      ConfigError: TensorFlow does not know it.
    """

    cachable = False

    def __init__(self, scheme: str):
        super().__init__()
        from tensorflow.io import gfile

        if scheme not in gfile.get_registered_schemes():
            raise ConfigError(
                f"{scheme}://: expected a file system that fsspec or TensorFlow knows, got another "
                "one"
            )
        self._gfile = gfile

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.rstrip('/')}"

    def unstrip_protocol(self, name: str) -> str:
        return name

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        with _python_errors(path):
            facts = self._gfile.stat(path)
        kind = "directory" if facts.is_directory else "file"
        return {"name": path, "size": facts.length, "type": kind, "mtime": facts.mtime_nsec}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        if self.info(path)["type"] == "file":
            names = [path]
        else:
            with _python_errors(path):
                names = [f"{path}/{name.rstrip('/')}" for name in self._gfile.listdir(path)]
        return [self.info(name) for name in names] if detail else names

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any):
        with _python_errors(path), self._gfile.GFile(path, "rb") as file:
            file.seek(start or 0)
            return file.read(-1 if end is None else end - (start or 0))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        del mode  # Whoever creates looks first; there is no better way here.
        self._write(io.BytesIO(value), path)

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        with open(lpath, "rb") as source:
            self._write(source, rpath)

    def _write(self, source: IO[bytes], path: str) -> None:
        """Writes a new file and renames it: opening an old one on `ram://` would append to it."""
        folder = os.path.dirname(path)
        temporary = f"{folder}/.{uuid.uuid4().hex}.tmp"
        with _python_errors(path):
            self._gfile.makedirs(folder)
            with self._gfile.GFile(temporary, "wb") as target:
                shutil.copyfileobj(source, target)
            self._gfile.rename(temporary, path, overwrite=True)

    def rm_file(self, path: str) -> None:
        with _python_errors(path):
            self._gfile.remove(path)

    def rm(self, path: str, recursive: bool = False, **_: Any) -> None:
        with _python_errors(path):
            self._gfile.rmtree(path) if recursive else self._gfile.remove(path)


@contextlib.contextmanager
def _python_errors(path: str) -> Iterator[None]:
    """Raises Python's errors for TensorFlow's, where there are such."""
    import tensorflow as tf

    try:
        yield
    except tf.errors.NotFoundError:
        raise FileNotFoundError(2, os.strerror(2), path) from None
    except tf.errors.PermissionDeniedError:
        raise PermissionError(13, os.strerror(13), path) from None
