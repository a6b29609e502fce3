"""Rows of TSV and CSV files.

TSV lines are split at tabs without quoting, as required for GLUE; CSV is quoted, and strictly so.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import re
import sys
from collections.abc import Iterable, Iterator

from data_prep.tasks.row_formats import register_row_format
from data_prep.tasks.rows import Row, distinct, listed, needed_columns
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data
from official.xlnet.files.compression import ending
from official.xlnet.files.text import open_text

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_AFTER_RETURN = re.compile(r"(?<=\r)(?=[^\n])")  # In a header: all lines end so, as on old Macs.
# A field with quotes in quotes, as a writer of CSV makes it.
_QUOTED = re.compile(r'"(?:[^"]*"")+[^"]*"')

# (line of the file where it begins, number of lines, fields)
Record = tuple[int, int, list[str]]


@register_row_format(endings=(".tsv",))
def tsv_rows(reading: Reading) -> Iterator[Row]:
    """Rows of values between tabs, without quotes."""
    return _delimited("\t", reading)


@register_row_format(endings=(".csv",))
def csv_rows(reading: Reading) -> Iterator[Row]:
    """Rows of values between commas, which may be in quotes."""
    return _delimited(",", reading)


def _delimited(usual: str, reading: Reading) -> Iterator[Row]:
    """Rows of a file of CSV or TSV, whose own separator is a comma or a tab."""
    path = reading.path
    with open_text(path, newline="" if usual == "," else "\n") as file:  # Texts of TSV may have \r.
        first, *others = _AFTER_RETURN.split(file.readline())
        require_data(
            not first.lstrip().startswith(('{"', "[{")),
            path,
            f"a table, as {ending(path) or 'no extension'} says",
            "JSON; rename the file to .jsonl",
        )
        separator = _separator(reading, first, usual)
        is_quoted = usual == "," or separator != usual
        lines = itertools.chain([first, *others], file)
        records = _quoted(reading, lines, separator) if is_quoted else _unquoted(reading, lines)
        yield from _named(reading, records)


def _separator(reading: Reading, first: str, usual: str) -> str:
    """The usual separator of the format, or the only one that splits the first line as expected."""
    fields_by_separator: dict[str, list[str]] = {}
    for separator in _SEPARATORS:
        with contextlib.suppress(csv.Error):
            rows = csv.reader([first], delimiter=separator, strict=True)
            fields_by_separator[separator] = next(rows, [])
    fields = first.split("\t") if usual == "\t" else fields_by_separator.get(usual, [])
    if len(fields) > 1:
        return usual
    columns = reading.settings.columns
    for other, names in fields_by_separator.items():
        has_names = len(names) > 1 and needed_columns(reading) <= set(names)
        if other != usual and (len(names) == len(columns) if columns else has_names):
            reading.say(
                f"columns are separated by {_SEPARATORS[other]}, as the first line says, not by "
                f"{_SEPARATORS[usual]}"
            )
            return other
    return usual


def _quoted(reading: Reading, lines: Iterable[str], separator: str) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)
    reader, start = csv.reader(lines, delimiter=separator, strict=True), 1
    try:
        for row in reader:
            yield start, reader.line_num - start + 1, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{reading.path}, line {start}: expected a row whose quotes are closed, got a quote "
            f"that opens there and, up to line {reader.line_num}, is not closed at the end of a "
            f"field ({error}); quotes within quotes are written twice"
        ) from None


def _unquoted(reading: Reading, lines: Iterable[str]) -> Iterator[Record]:
    num_quoted = 0
    for line_number, line in enumerate(lines, start=1):
        row = line.removesuffix("\n").removesuffix("\r").split("\t")
        num_quoted += any(map(_QUOTED.fullmatch, row))
        yield line_number, 1, [] if row == [""] else row
    if num_quoted and reading.with_labels:
        reading.say(
            f"{num_quoted} lines have fields in quotes, which TSV reads as part of the text; "
            "with the extension .csv, quotes are read, and tabs are separators, too"
        )


def _named(reading: Reading, records: Iterator[Record]) -> Iterator[Row]:
    path = reading.path
    first: Record = next(records, (1, 1, []))
    require_data(bool(first[2]), path, "a header with column names", "an empty file")
    columns, has_header = _columns(reading, first[2])
    distinct(filter(None, columns), path)
    records = records if has_header else itertools.chain([first], records)
    first_row = next(records, None)
    if first_row is None:
        _require_columns(reading, columns)
        return
    for line, num_lines, fields in itertools.chain([first_row], records):
        if not fields:
            require_data(not reading.strict, f"{path}, line {line}", "a row", "an empty line")
            reading.counts["blank_lines"] += 1
        elif len(fields) == len(columns):
            yield dict(zip(columns, fields, strict=True))
        else:
            message = (
                f"{path}, line {line}: expected {len(columns)} columns "
                f"({listed(columns)}), got {len(fields)}"
            )
            if num_lines > 1:
                raise DataError(
                    f"{message} in a row of {num_lines} lines; a quote in line {line} or after it "
                    "is probably never closed"
                )
            reading.reject("malformed_rows", message)


def _require_columns(reading: Reading, columns: list[str]) -> None:
    """Checks the header of a file without rows, such as a text of one line that is no table."""
    missing = sorted(needed_columns(reading) - {*columns})
    if missing:
        got = f"a header of {', '.join(map(repr, columns))} without rows"
        require_data(False, reading.path, f"a column {missing[0]!r}", got)


def _columns(reading: Reading, fields: list[str]) -> tuple[list[str], bool]:
    """The names of the columns, and whether they are in the first row, which is then a header.

    Without a header, they are `task.columns`; in a file to predict that has only columns of text,
    they are `task.text_columns`.
    """
    columns, texts = list(reading.settings.columns), list(reading.settings.text_columns)
    if not columns:
        return fields, True
    if fields == columns or (texts and needed_columns(reading) <= set(fields)):
        reading.say(f"the first line is read as a header: {listed(fields)}")
        return fields, True
    if reading.with_labels or len(fields) == len(columns) or not texts:
        return columns, False
    require_data(
        len(fields) == len(texts),
        reading.path,
        f"a header with {listed(texts)}, or {len(texts)} columns ({listed(texts)}), or "
        f"{len(columns)} columns as in training ({listed(columns)})",
        f"{len(fields)} columns",
    )
    reading.say(f"columns are read as {listed(texts)}")
    return texts, False
