"""Measured rows in JSON files, and their tables in hand-written Markdown documents."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from benchmarks.harness.small_runs import small_numbers
from official.xlnet.configs.experiment import recipe_path
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json

Row = dict[str, Any]
_COMMAND = re.compile(r"^python -m benchmarks\.learning(?:[^\n]*\\\n)*[^\n]*", re.M)
_ELSEWHERE = ("--output", "--document", "--minutes", "#")


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


def recipe_digests(*recipes: str) -> list[str]:
    """Returns `PATH DIGEST` of recipes; comments do not count.

    Args:
      *recipes: paths of recipes.
    """
    trees = (yaml.safe_load(pathlib.Path(recipe_path(path)).read_text("utf-8")) for path in recipes)
    settings = (json.dumps(tree, sort_keys=True) for tree in trees)
    return [f"{path} {_digest(text)}" for path, text in zip(recipes, settings, strict=True)]


def command_above(text: str, table: str) -> str | None:
    """Returns the command of `benchmarks.learning` above a table of a page, as one line.

    Args:
      text: the page.
      table: name of the table.
    """
    before = text.partition(f"<!-- table: {table} -->")[0]
    commands = _COMMAND.findall(before)
    return " ".join(commands[-1].replace("\\\n", " ").split()) if commands else None


def command_digest(command: str) -> str:
    """Returns `command DIGEST`; where it writes to, and how long it may take, does not count."""
    words = [word for word in command.split() if not word.startswith(_ELSEWHERE)]
    return f"command {_digest(' '.join(words))}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def fill_table(document: str, name: str, table: str, measured: Iterable[str] = ()) -> None:
    """Replaces the text between `<!-- table: NAME -->` and `<!-- end -->`.

    The end names what was measured: recipes, the command of `benchmarks.learning` above the table,
    and its numbers at a small size, `<!-- end: command 6631470a, configs/tiny.yaml 0a1b2c3d,
    numbers 4.7112 4.8031 -->`. `benchmarks.learning.stale` lists tables of which these differ.

    Args:
      document: path of the Markdown file.
      name: name of the table.
      table: Markdown text.
      measured: see `recipe_digests`.

    Raises:
      ValueError: the document does not have exactly one such table.
    """
    text = pathlib.Path(document).read_text(encoding="utf-8")
    entries = {*measured}
    if command := command_above(text, name):
        numbers = " ".join(f"{number:.9g}" for number in small_numbers(command))
        entries |= {command_digest(command), f"numbers {numbers}"}
    end = f"<!-- end: {', '.join(sorted(entries))} -->" if entries else "<!-- end -->"
    pattern = rf"(<!-- table: {re.escape(name)} -->\n).*?<!-- end[^>]*-->"
    text, replaced = re.subn(pattern, lambda m: f"{m[1]}{table}\n{end}", text, flags=re.S)
    if replaced != 1:
        raise ValueError(f"{document}: expected one place for table {name!r}, got {replaced}")
    write_bytes(document, text.encode())
