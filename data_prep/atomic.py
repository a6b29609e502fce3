"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

_CHUNK_BYTES = 1 << 20


@contextlib.contextmanager
def atomic_write(path: str, temporary_dir: str) -> Iterator[BinaryIO]:
    """Opens a temporary file that becomes `path` when the block ends without an error.

    Args:
      path: where the file is to be; what was there is replaced.
      temporary_dir: a directory on the same file system.
    """
    temporary = os.path.join(temporary_dir, f"{os.path.basename(path)}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and not error.filename:
            raise OSError(error.errno, error.strerror, path) from None  # A full disk names no file.
        raise


def write_json(path: str, tree: Any, temporary_dir: str) -> None:
    """Writes a JSON file atomically."""
    with atomic_write(path, temporary_dir) as file:
        file.write(json.dumps(tree, indent=1).encode() + b"\n")


def read_json(path: str) -> Any:
    """Returns the tree in a JSON file, None where there is no file."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def sha256_of(path: str) -> str | None:
    """SHA-256 of a file in hexadecimal, None where there is no file."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
