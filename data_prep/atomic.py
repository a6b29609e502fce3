"""Completion records and checksums."""

from __future__ import annotations

import hashlib
from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files import file_system
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text, read_json
from official.xlnet.files.schema import conform

_CHUNK_BYTES = 1 << 20  # Read size for checksums.


def write_json(path: str, tree: Any, temporary_dir: str) -> None:
    """Writes a JSON file atomically.

    Args:
      path: the file to write.
      tree: a JSON-serializable value.
      temporary_dir: see `atomic_write`.
    """
    with atomic_write(path, temporary_dir) as file:
        file.write(json_text(tree, indent=1).encode() + b"\n")


def read_completion(path: str) -> dict[str, Any]:
    """Returns a completion record; empty if there is none.

    A damaged record counts as absent: its work is done again.
    """
    try:
        return conform(read_json(path), dict[str, Any], path)
    except (FileNotFoundError, DataError):
        return {}


def sha256_of(path: str) -> str | None:
    """Returns the SHA-256 of a file in hexadecimal, or None if it does not exist."""
    digest = hashlib.sha256()
    try:
        with file_system.open(path, "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()
