"""Rows of texts to embed, score or continue, with all columns; pairs, and SyntaxGym's suites."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from data_prep.tasks.row_formats import RowFormat, row_format_of
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.data.text_files import batched, incoming_rows
from official.xlnet.errors import DataError, did_you_mean, require_data
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text

Row = dict[str, Any]
Check = Callable[[Row, str], None]
_OF_JSON = str | int | float | list | dict | None  # Others, such as dates, are read as text.
_NAMES = (
    {"sentence_good": "good", "sentence_bad": "bad"},  # BLiMP's columns.
    {"frame": "context", "completion": "text"},  # Columns of cloze norms.
)


def text_chunks(
    texts: Sequence[str],
    path: str | None,
    size: int,
    needed: Sequence[str] = ("text",),
    check: Check | None = None,
    format: str | None = None,
) -> tuple[Iterator[list[Row]], int]:
    """Reads rows in chunks; those of standard input as they come.

    Args:
      texts: see `read_text_rows`.
      path: see `read_text_rows`; or `-` for standard input: lines of text, or of JSON objects.
      size: the most rows of a chunk.
      needed: see `read_text_rows`.
      check: see `read_text_rows`.
      format: see `read_text_rows`.

    Returns:
      The chunks, and the number of their rows; 0 for standard input.

    Raises:
      DataError: see `read_text_rows`; for standard input when the chunk is read.
    """
    if path != STANDARD:
        rows = read_text_rows(texts, path, needed, check, format)
        return batched(rows, size), len(rows)

    def incoming() -> Iterator[list[Row]]:
        number = 0
        for some in itertools.chain(batched(texts, size), incoming_rows(size)):
            rows = [row if isinstance(row, dict) else {"text": row} for row in some]
            yield _checked(rows, "standard input", number, needed, check)
            number += len(rows)

    return incoming(), 0


def read_text_rows(
    texts: Sequence[str],
    path: str | None,
    needed: Sequence[str] = ("text",),
    check: Check | None = None,
    format: str | None = None,
) -> list[Row]:
    """Collects texts from the command line and a file, as rows.

    Args:
      texts: texts from the command line, each a row of `text` alone.
      path: optional table with a header (CSV, TSV, JSON lines, Parquet), or FASTA; or a file with
        one text per line, where a blank line is an empty text.
      needed: columns that must be there, with a string in each row; of pairs, `good` and `bad`,
        which are BLiMP's `sentence_good` and `sentence_bad`; of cloze norms, `context` and `text`,
        which may be `frame` and `completion`.
      check: called with each row and its place, for messages; raises an error for a wrong one.
      format: `kaldi` or `nbest`, see `score_file`; None: by the name of the file.

    Returns:
      {column: value} for each row.

    Raises:
      DataError: the file cannot be read, there is no row, or a needed value is not there.
    """
    rows: list[Row] = [{"text": text} for text in texts]
    if path is None:
        pass
    elif format:
        rows += _kaldi(path) if format == "kaldi" else _nbest(path)
    elif row_format := row_format_of(path):
        rows += _table_rows(path, row_format)
    else:
        with open_text(path) as file:
            rows += [{"text": line.rstrip("\n")} for line in file]
    require_data(bool(rows), path or "--text, --input", "at least one text", "none")
    return _checked(rows, str(path), 0, needed, check)


def _table_rows(path: str, row_format: RowFormat) -> Iterator[Row]:
    """Rows of a table, with values as JSON has them."""
    from data_prep.tasks.table import plain

    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for row in row_format.rows(reading):
        values = plain(row)
        for name, value in values.items():
            if not isinstance(value, _OF_JSON):
                values[name] = str(value)
        yield values


def _checked(
    rows: list[Row], path: str, before: int, needed: Sequence[str], check: Check | None
) -> list[Row]:
    """Rows whose needed values are there, under our names; `before` of them came before."""
    others = next((names for names in _NAMES if {*names.values()} <= {*needed}), {})
    for number, row in enumerate(rows, before + 1):
        where = f"{path}, row {number}"
        row |= {ours: row[name] for name, ours in others.items() if name in row}
        for name in (name for name in needed if not isinstance(row.get(name), str)):
            columns = f"the columns {', '.join(row)}{did_you_mean(name, row)}"
            got = shown(row[name]) if name in row else columns
            raise DataError(f"{where}: expected a string {name!r}, got {got}")
        if check:
            check(row, where)
    return rows


def _kaldi(path: str) -> Iterator[dict[str, Any]]:
    """Rows of lines of an id and its words."""
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            name, *text = line.split(maxsplit=1)[:2] or [""]
            require_data(name != "", f"{path}, line {number}", "an id and words", "a blank line")
            yield {"id": name, "text": "".join(text).rstrip()}


def _nbest(path: str) -> Iterator[dict[str, Any]]:
    """A row for each hypothesis in the lists `hyps` of JSON lines."""
    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    from data_prep.tasks.json_files import json_rows

    for number, row in enumerate(json_rows(reading), start=1):
        hyps = row.pop("hyps", None)
        objects = [x for x in hyps if isinstance(x, dict)] if isinstance(hyps, list) else []
        has_texts = bool(objects) and all(isinstance(x.get("text"), str) for x in objects)
        expected = "a list 'hyps' of objects with a string 'text'"
        is_right = has_texts and len(objects) == len(hyps)
        require_data(is_right, f"{path}, row {number}", expected, shown(hyps))
        yield from ({"utterance": number, **row, **hyp} for hyp in hyps)


def read_suite(path: str) -> tuple[list[Row], list[str]] | None:
    """Reads a SyntaxGym suite.

    Args:
      path: a table; a `.json` file may be a suite.

    Returns:
      A row for each condition of each item: `item`, `condition`, `text`, and `regions`, {region:
      span of characters}; and the formulas of the predictions. None for another file, or an empty
      suite.
    """
    if not path.endswith(".json"):
        return None
    try:
        suite = read_json(path)
        formulas = [each["formula"] for each in suite["predictions"]]
        conditions = [(item, each) for item in suite["items"] for each in item["conditions"]]
    except (DataError, KeyError, TypeError):
        return None
    rows = []
    for item, condition in conditions:
        text, regions = "", {}
        for region in condition["regions"]:
            text += " " * bool(text and region["content"]) + region["content"]
            regions[str(region["region_number"])] = len(text) - len(region["content"]), len(text)
        of_item = {"item": item["item_number"], "condition": condition["condition_name"]}
        rows.append({**of_item, "text": text, "regions": regions})
    return (rows, formulas) if rows and formulas else None
