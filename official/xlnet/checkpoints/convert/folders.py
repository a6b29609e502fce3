"""Folders that appear whole or not at all, and the small files in them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from typing import Any

from official.xlnet.errors import DataError


@contextlib.contextmanager
def new_folder(path: str) -> Iterator[str]:
    """Yields a temporary folder that becomes `path` when the block ends without an error.

    Raises:
      DataError: there is something at `path` already.
    """
    path = os.path.abspath(path)
    if os.path.exists(path) and (not os.path.isdir(path) or os.listdir(path)):
        raise DataError(f"{path!r}: expected a new or an empty folder, got one with files in it")
    temporary = f"{path}.{uuid.uuid4().hex}.tmp"
    os.makedirs(temporary)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_json(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Raises:
      DataError: there is no object in it.
    """
    try:
        with open(path, encoding="utf-8") as file:
            tree = json.load(file)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(tree).__name__}")
    return tree


def write_json(path: str, tree: dict[str, Any]) -> None:
    """Writes a JSON file."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tree, file, indent=2)
        file.write("\n")


def value_of(tree: dict[str, Any], key: str, path: str, expected: type, default: Any = None) -> Any:
    """Returns the value of a key.

    Raises:
      DataError: it is of another type, or missing where there is no default.
    """
    value = tree.get(key)
    if value is None:
        value = default
    if expected is float and type(value) is int:
        value = float(value)
    if type(value) is not expected:
        raise DataError(f"{path}: {key}: expected {expected.__name__}, got {value!r}")
    return value
