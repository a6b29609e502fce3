"""JSON files of other formats, with type checks."""

from __future__ import annotations

from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files import json_files
from official.xlnet.files.schema import conform, shown

# Key of `objective.kind` in other formats, which have no name for it; without it, `permutation`.
OBJECTIVE_KEY = "pretraining_objective"


def read_json(path: str) -> dict[str, Any]:
    """Reads a JSON file that contains an object.

    Args:
      path: path of the file.

    Raises:
      DataError: the file is not valid JSON or does not contain an object.
    """
    return conform(json_files.read_json(path), dict[str, Any], path)


def write_json(path: str, tree: dict[str, Any]) -> None:
    """Writes an object to a JSON file."""
    json_files.write_json(path, tree, indent=2)


def value_of(tree: dict[str, Any], key: str, path: str, expected: type, default: Any = None) -> Any:
    """Returns a value of a JSON object, with a type check.

    Args:
      tree: the JSON object.
      key: the key.
      path: path of the file, for the message.
      expected: the expected type; integers are accepted as `float`.
      default: value used if the key is missing or null.

    Raises:
      DataError: the value has another type, or is missing and has no default.
    """
    value = tree.get(key)
    if value is None:
        value = default
    if expected is float and type(value) is int:
        value = float(value)
    if type(value) is not expected:
        raise DataError(f"{path}: {key}: expected {expected.__name__}, got {shown(value)}")
    return value
