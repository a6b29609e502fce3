"""JSON objects that describe dataclasses; see `schema.conform`."""

from __future__ import annotations

import dataclasses
from typing import Any

from official.xlnet.errors import DataError


def require_keys(tree: dict[Any, Any], schema: Any, where: str) -> None:
    """Raises `DataError` if a JSON object lacks a field of a dataclass, or has another key.

    Args:
      tree: the object.
      schema: the dataclass.
      where: what the object is, for the message.
    """
    fields = dataclasses.fields(schema)
    required = {field.name for field in fields if field.default is dataclasses.MISSING}
    got = ", ".join(map(str, tree))
    for key in sorted(required - tree.keys()):
        raise DataError(f"{where}: expected the key {key!r}, got {got}")
    for key in sorted(map(str, tree.keys() - {field.name for field in fields})):
        raise DataError(f"{where}: expected no key {key!r}, got {got}")
