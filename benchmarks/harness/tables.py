"""Measured rows in JSON files, and their tables in hand-written Markdown documents."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import yaml

from official.xlnet.configs.experiment import recipe_path
from official.xlnet.files.atomic import write_bytes
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
    return tuple(
        json.dumps(x, sort_keys=True) if isinstance(x, list | tuple | dict) else x
        for x in map(row.__getitem__, key)
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


# Code that decides what a training run learns.
_SOURCES = (
    "official/xlnet/modeling/**/*.py",
    "official/xlnet/data/*.py",
    "official/xlnet/training/optimization.py",
    "official/xlnet/training/schedules.py",
    "data_prep/records/*.py",
)


def measured_with(*recipes: str) -> list[str]:
    """`PATH DIGEST` of recipes and `sources DIGEST` of the code, which results depend on.

    Comments do not count, in recipes and in code; docstrings and blank lines do not, either.

    Args:
      *recipes: paths of recipes.
    """
    root = pathlib.Path(__file__).parents[2]
    paths = sorted({path for pattern in _SOURCES for path in root.glob(pattern)})
    code = "".join(_words_of(path.read_text("utf-8")) for path in paths)
    read = (yaml.safe_load(pathlib.Path(recipe_path(path)).read_text("utf-8")) for path in recipes)
    settings = (json.dumps(tree, sort_keys=True) for tree in read)
    named = zip((*recipes, "sources"), (*settings, code), strict=True)
    return [f"{name} {hashlib.sha256(text.encode()).hexdigest()[:8]}" for name, text in named]


@functools.cache
def _words_of(code: str) -> str:
    """Names, constants and kinds of expressions of a module, the same in all versions of Python."""
    tree = _WithoutDocstrings().visit(ast.parse(code))
    fields = ([type(node).__name__, *ast.iter_fields(node)] for node in ast.walk(tree))
    return repr([[x for x in node if not isinstance(x[-1], ast.AST | list)] for node in fields])


class _WithoutDocstrings(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


def fill_table(document: str, name: str, table: str, measured: Iterable[str] = ()) -> None:
    """Replaces the text between `<!-- table: NAME -->` and `<!-- end -->`.

    The end names what was measured, `<!-- end: configs/tiny.yaml 0a1b2c3d, sources 4e5f6a7b -->`.
    A test fails when a recipe has changed since; `benchmarks.learning.stale` lists tables whose
    code has.

    Args:
      document: path of the Markdown file.
      name: name of the table.
      table: Markdown text.
      measured: see `measured_with`.

    Raises:
      ValueError: the document does not have exactly one such table.
    """
    text = pathlib.Path(document).read_text(encoding="utf-8")
    digests = ", ".join(sorted(set(measured)))
    end = f"<!-- end: {digests} -->" if digests else "<!-- end -->"
    pattern = rf"(<!-- table: {re.escape(name)} -->\n).*?<!-- end[^>]*-->"
    text, replaced = re.subn(pattern, lambda m: f"{m[1]}{table}\n{end}", text, flags=re.S)
    if replaced != 1:
        raise ValueError(f"{document}: expected one place for table {name!r}, got {replaced}")
    write_bytes(document, text.encode())
