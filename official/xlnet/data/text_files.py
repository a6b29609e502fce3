"""Reading of plain text files and writing of JSON lines."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.compression import without_compression
from official.xlnet.files.json_files import json_text, parse_json, print_json
from official.xlnet.files.text import open_text


def read_texts(texts: list[str], path: str | None) -> list[str]:
    """Collects texts from the command line and from a text file.

    Args:
      texts: texts given on the command line.
      path: optional file with a text in each of its rows; see `read_rows`.

    Returns:
      `texts` followed by those of the file.

    Raises:
      DataError: there is no text, or the file is not UTF-8.
    """
    texts = [*texts, *(read_rows(path) if path is not None else [])]
    if not texts:
        raise DataError("--text, --input: expected at least one text, got none")
    return texts


def read_rows(path: str) -> list[str]:
    """Reads the texts of a file, one for each of its rows.

    Args:
      path: a UTF-8 file with one text per line, where a blank line is an empty text; or JSON
        lines (`.jsonl`, `.json`, `.ndjson`) of objects with a string `text`.

    Raises:
      DataError: there is no row, a row has no text, the file is not UTF-8, or a table by its name.
    """
    extension = os.path.splitext(without_compression(path))[1].lower()
    if extension in (".csv", ".tsv"):
        raise DataError(
            f"{path}: expected a text file with one text on each line, or JSON lines, got a table "
            "by its name; write the column of texts to a file of its own"
        )
    with open_text(path) as file:
        rows = [line.rstrip("\n") for line in file]
    if not rows:
        raise DataError(f"{path}: expected at least one text, got none")
    if extension in (".jsonl", ".json", ".ndjson"):
        return [_text_of(row, f"{path}, line {number}") for number, row in enumerate(rows, 1)]
    return rows


def _text_of(line: str, where: str) -> str:
    """Returns the value of `text` in a JSON object."""
    tree = parse_json(line, where)
    text = tree.get("text") if isinstance(tree, dict) else None
    if not isinstance(text, str):
        raise DataError(f"{where}: expected a JSON object with a string 'text', got {line:.60}")
    return text


def write_json_lines(path: str | None, rows: Iterable[dict[str, Any]]) -> int:
    """Writes rows as JSON lines; returns their number.

    Args:
      path: the output file, written atomically; None for standard output.
      rows: JSON-serializable dictionaries.
    """
    number = 0
    with contextlib.nullcontext() if path is None else atomic_write(path) as file:
        for row in rows:
            number += 1
            if file is None:
                print_json(row)
            else:
                file.write(json_text(row).encode() + b"\n")
    return number
