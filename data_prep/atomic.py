"""Atomic file writes, JSON files and checksums."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from typing import Any, BinaryIO

_CHUNK_BYTES = 1 << 20  # Read size for checksums.


@contextlib.contextmanager
def atomic_write(path: str, temporary_dir: str) -> Iterator[BinaryIO]:
    """Context manager that writes a file atomically.

    Yields a temporary file, which is renamed to `path` if the block succeeds, and removed
    otherwise.

    Args:
      path: the file to write; replaced if it exists.
      temporary_dir: directory of the temporary file, on the same file system.

    Example:
      >>> with atomic_write("out/manifest.json", "out") as file:
      ...     file.write(b"{}")
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
            raise OSError(error.errno, error.strerror, path) from None  # ENOSPC has no file name.
        raise


def write_json(path: str, tree: Any, temporary_dir: str) -> None:
    """Writes a JSON file atomically.

    Args:
      path: the file to write.
      tree: a JSON-serializable value.
      temporary_dir: see `atomic_write`.
    """
    with atomic_write(path, temporary_dir) as file:
        file.write(json.dumps(tree, indent=1).encode() + b"\n")


def read_json(path: str) -> Any:
    """Returns the contents of a JSON file, or None if it does not exist."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def sha256_of(path: str) -> str | None:
    """Returns the SHA-256 of a file in hexadecimal, or None if it does not exist."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
