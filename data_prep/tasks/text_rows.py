"""Rows of texts to embed, score or continue, with all columns."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from data_prep.tasks.row_formats import RowFormat, row_format_of
from official.xlnet.configs.registry import TEXT_ROW_FORMATS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.reading import Reading
from official.xlnet.data.text_files import ERROR, WrongRow, batched, incoming_rows
from official.xlnet.errors import ConfigError, DataError, did_you_mean, require_config, require_data
from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.schema import shown
from official.xlnet.files.text import open_text

Row = dict[str, Any]
Check = Callable[[Row, str], None]
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
    """Reads rows in chunks; those of standard input as they come, the wrong ones as `WrongRow`.

    Args:
      texts: see `read_text_rows`.
      path: see `read_text_rows`; or `-` for standard input: lines of text, or of JSON objects.
      size: the most rows of a chunk.
      needed: see `read_text_rows`.
      check: see `read_text_rows`.
      format: see `read_text_rows`.
      written: see `read_text_rows`; of standard input also `error`.

    Returns:
      The chunks, and the number of their rows; 0 for standard input.

    Raises:
      ConfigError, DataError: see `read_text_rows`; not for standard input.
    """
    if path != STANDARD:
        rows = read_text_rows(texts, path, needed, check, format, written)
        return batched(rows, size), len(rows)

    row_check = RowCheck(needed, check, {*written, ERROR})

    def incoming() -> Iterator[list[Any]]:
        num_read = 0
        for chunk in itertools.chain(batched(texts, size), incoming_rows(size)):
            rows = []
            for row_number, row in enumerate(chunk, num_read + 1):
                rows.append(_row_or_error(row, f"standard input, row {row_number}", row_check))
            yield rows
            num_read += len(rows)

    return incoming(), 0


def _row_or_error(row: Any, where: str, row_check: RowCheck) -> Row | WrongRow:
    """A checked row of standard input, or what is wrong with it."""
    if isinstance(row, WrongRow):
        return row
    columns = row if isinstance(row, dict) else {"text": row}
    try:
        return row_check.checked(columns, where)
    except (ConfigError, DataError) as error:
        return WrongRow(columns, str(error))


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
    row_check = RowCheck(needed, check, written)
    return [row_check.checked(row, f"{path}, row {n}") for n, row in enumerate(rows, start=1)]


def _table_rows(path: str, row_format: RowFormat) -> Iterator[Row]:
    """Rows of a table, with values of Python."""
    from data_prep.tasks.plain_values import plain

    reading = Reading(path, TaskConfig(), strict=True, with_labels=False)
    for row in row_format.rows(reading):
        yield plain(row)


def _as_json(value: Any, where: str) -> Any:
    """A value as JSON holds it, others as text; raises `DataError` for bytes and infinity."""
    if isinstance(value, list):
        return [_as_json(item, where) for item in value]
    if isinstance(value, dict):
        return {str(key): _as_json(item, where) for key, item in value.items()}
    expected = "values that JSON holds; remove the column, or make them texts"
    require_data(not isinstance(value, bytes), where, expected, "bytes")
    is_infinite = isinstance(value, float) and math.isinf(value)
    require_data(not is_infinite, where, expected, "an infinite number")
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else str(value)


@dataclasses.dataclass(frozen=True)
class RowCheck:
    """What a row has to have; see `read_text_rows` for the attributes."""

    needed: Sequence[str]
    check: Check | None
    written: Collection[str]

    def checked(self, row: Row, where: str) -> Row:
        """Returns a row whose needed values are there, under our names.

        Args:
          row: the row, changed in place.
          where: its place, for messages.

        Raises:
          ConfigError: it has a column that the caller writes.
          DataError: a needed value is not there, or JSON holds no such value.
        """
        for name, value in row.items():
            row[name] = _as_json(value, f"{where}, column {name!r}")
        taken = sorted(row.keys() & {*self.written})
        expected = "a table without the columns that are written"
        require_config(not taken, where, expected, f"{', '.join(taken)}; rename them")
        others = next((names for names in _NAMES if {*names.values()} <= {*self.needed}), {})
        for name, ours in others.items():
            if name not in row:
                continue
            is_other = ours in row and row[ours] != row[name]
            require_data(not is_other, where, f"one column of {name!r} and {ours!r}", "both")
            row[ours] = row[name]
        for name in (name for name in self.needed if not isinstance(row.get(name), str)):
            columns = f"the columns {', '.join(row)}{did_you_mean(name, row)}"
            got = shown(row[name]) if name in row else columns
            raise DataError(f"{where}: expected a string {name!r}, got {got}")
        if self.check:
            self.check(row, where)
        return row
