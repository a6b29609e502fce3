"""JSON objects as dataclasses; see `schema.conform`."""

from __future__ import annotations

import dataclasses
from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files.schema import conform, types_of_fields


def dataclass_of(tree: dict[Any, Any], schema: type, where: str) -> Any:
    """Returns the dataclass that a JSON object describes."""
    type_hints = types_of_fields(schema)
    required = {
        field.name for field in dataclasses.fields(schema) if field.default is dataclasses.MISSING
    }
    got = ", ".join(map(str, tree))
    for key in sorted(required - tree.keys()):
        raise DataError(f"{where}: expected the key {key!r}, got {got}")
    for key in sorted(map(str, tree.keys() - type_hints)):
        raise DataError(f"{where}: expected no key {key!r}, got {got}")
    values = {
        key: conform(value, type_hints[key], f"{where}: {key}") for key, value in tree.items()
    }
    return schema(**values)
