"""A JSON file of measured rows, which keep their place when they are measured again."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def read_rows(path: str) -> list[Row]:
    """The rows on file; none where there is no file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def add_row(path: str, row: Row, key: Sequence[str]) -> None:
    """Writes a row to the file, in the place of an older one with the same values of `key`."""
    rows = {key_of(old, key): old for old in [*read_rows(path), row]}
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump([rows[name] for name in sorted(rows)], file, indent=1)
        file.write("\n")
    os.replace(path + ".tmp", path)


def key_of(row: Row, key: Sequence[str]) -> tuple:
    """The values of `key`, comparable; lists and dictionaries as their JSON."""
    values = (row[name] for name in key)
    return tuple(
        json.dumps(x, sort_keys=True) if isinstance(x, list | tuple | dict) else x for x in values
    )
