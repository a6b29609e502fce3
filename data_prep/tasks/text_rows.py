"""Rows of texts to embed, score or continue, with all columns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from data_prep.tasks.row_formats import RowFormat, row_format_of
from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.data.text_files import batched, incoming_rows
from official.xlnet.errors import DataError, did_you_mean, require_config, require_data
from official.xlnet.files.arguments import STANDARD
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
    *,
    written: Collection[str],
) -> tuple[Iterator[list[Row]], int]:
    """Reads rows in chunks; those of standard input as they come.

    Args:
      texts: see `read_text_rows`.
      path: see `read_text_rows`; or `-` for standard input: lines of text, or of JSON objects.
      size: the most rows of a chunk.
      needed: see `read_text_rows`.
      check: see `read_text_rows`.
      format: see `read_text_rows`.
      written: see `read_text_rows`.

    Returns:
      The chunks, and the number of their rows; 0 for standard input.

    Raises:
      ConfigError, DataError: see `read_text_rows`; for standard input when the chunk is read.
    """
    if path != STANDARD:
        rows = read_text_rows(texts, path, needed, check, format, written)
        return batched(rows, size), len(rows)

    def incoming() -> Iterator[list[Row]]:
        num_read = 0
        for chunk in itertools.chain(batched(texts, size), incoming_rows(size)):
            rows = [row if isinstance(row, dict) else {"text": row} for row in chunk]
            yield _checked(rows, "standard input", num_read, needed, check, written)
            num_read += len(rows)

    return incoming(), 0


def read_text_rows(
    texts: Sequence[str],
    path: str | None,
    needed: Sequence[str] = ("text",),
    check: Check | None = None,
    format: str | None = None,
    written: Collection[str] = (),
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
      format: a name in `TEXT_ROW_FORMATS`; None: by the name of the file.
      written: columns that the caller writes beside those of the rows, which may not have them.

    Returns:
      {column: value} for each row.

    Raises:
      ConfigError: a row has a column that the caller writes.
      DataError: the file cannot be read, there is no row, or a needed value is not there.
    """
    rows: list[Row] = [{"text": text} for text in texts]
    if path is None:
        pass
    elif format:
        rows += TEXT_ROW_FORMATS[format](path)
    elif row_format := row_format_of(path):
        rows += _table_rows(path, row_format)
    else:
        with open_text(path) as file:
            rows += [{"text": line.rstrip("\n")} for line in file]
    require_data(bool(rows), path or "--text, --input", "at least one text", "none")
    return _checked(rows, str(path), 0, needed, check, written)


def _table_rows(path: str, row_format: RowFormat) -> Iterator[Row]:
    """Rows of a table, with values as JSON has them."""
    from data_prep.tasks.plain_values import plain

    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for row in row_format.rows(reading):
        values = plain(row)
        for name, value in values.items():
            if not isinstance(value, _OF_JSON):
                values[name] = str(value)
        yield values


def _checked(
    rows: list[Row],
    path: str,
    before: int,
    needed: Sequence[str],
    check: Check | None,
    written: Collection[str],
) -> list[Row]:
    """Rows whose needed values are there, under our names; `before` of them came before."""
    others = next((names for names in _NAMES if {*names.values()} <= {*needed}), {})
    for row_number, row in enumerate(rows, before + 1):
        where = f"{path}, row {row_number}"
        taken = sorted(row.keys() & {*written})
        expected = "a table without the columns that are written"
        require_config(not taken, where, expected, f"{', '.join(taken)}; rename them")
        for name, ours in others.items():
            if name not in row:
                continue
            is_other = ours in row and row[ours] != row[name]
            require_data(not is_other, where, f"one column of {name!r} and {ours!r}", "both")
            row[ours] = row[name]
        for name in (name for name in needed if not isinstance(row.get(name), str)):
            columns = f"the columns {', '.join(row)}{did_you_mean(name, row)}"
            got = shown(row[name]) if name in row else columns
            raise DataError(f"{where}: expected a string {name!r}, got {got}")
        if check:
            check(row, where)
    return rows
