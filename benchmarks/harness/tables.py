"""Measured rows in JSON files, and their tables in hand-written Markdown documents."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import yaml

from official.xlnet.files.json_files import write_json

Row = dict[str, Any]


def read_rows(path: str) -> list[Row]:
    """The rows on file; none where there is no file."""
    if not os.path.exists(path):
        return []
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def add_row(path: str, row: Row, key: Sequence[str]) -> None:
    """Writes a row to the file, in the place of an older one with the same values of `key`."""
    rows = {key_of(old, key): old for old in [*read_rows(path), row]}
    write_json(path, [rows[name] for name in sorted(rows)])


def key_of(row: Row, key: Sequence[str]) -> tuple:
    """The values of `key`, comparable; lists and dictionaries as their JSON."""
    values = (row[name] for name in key)
    return tuple(
        json.dumps(x, sort_keys=True) if isinstance(x, list | tuple | dict) else x for x in values
    )


def markdown_table(rows: Iterable[Sequence[object]]) -> str:
    """Returns a table whose first row is its head."""
    head, *others = rows
    lines = [head, ["---"] * len(head), *others]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean and standard deviation over seeds; empty where nothing was measured."""
    if np.isnan(values).all():  # Also of no values.
        return ""
    spread = f" ± {np.nanstd(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.nanmean(values):.{digits}f}{spread}"


def recipe_digest(path: str) -> str:
    """Eight hexadecimal digits of the settings in the file of a recipe, whatever its comments."""
    settings = json.dumps(yaml.safe_load(pathlib.Path(path).read_text("utf-8")), sort_keys=True)
    return hashlib.sha256(settings.encode()).hexdigest()[:8]


def fill_table(document: str, name: str, table: str, recipes: Iterable[str] = ()) -> None:
    """Replaces the text between `<!-- table: NAME -->` and `<!-- end -->`.

    The end names the recipes with their digests, `<!-- end: configs/tiny.yaml 0a1b2c3d -->`: a test
    fails when a recipe has changed since its table was measured.

    Args:
      document: path of the Markdown file.
      name: name of the table.
      table: Markdown text.
      recipes: paths of the recipes that were measured.

    Raises:
      ValueError: the document does not have exactly one such table.
    """
    text = pathlib.Path(document).read_text(encoding="utf-8")
    measured = ", ".join(f"{path} {recipe_digest(path)}" for path in recipes)
    end = f"<!-- end: {measured} -->" if measured else "<!-- end -->"
    pattern = rf"(<!-- table: {re.escape(name)} -->\n).*?<!-- end[^>]*-->"
    text, replaced = re.subn(pattern, lambda m: f"{m[1]}{table}\n{end}", text, flags=re.S)
    if replaced != 1:
        raise ValueError(f"{document}: expected one place for table {name!r}, got {replaced}")
    pathlib.Path(document + ".tmp").write_text(text, encoding="utf-8")
    os.replace(document + ".tmp", document)
