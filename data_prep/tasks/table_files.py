"""Rows of files: TSV, CSV, JSON lines, a JSON array of objects, and Parquet.

TSV lines are split at tabs without quoting, as required for GLUE; CSV is quoted, and strictly so.
Extensions are read without case; for compressed files, the extension before `.gz` counts.
"""

from __future__ import annotations

import csv
import itertools
import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.tasks.rows import Row, listed
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.compression import without_compression
from official.xlnet.files.json_files import parse_json
from official.xlnet.files.schema import conform, shown
from official.xlnet.files.text import open_text

_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_file(reading: Reading) -> Iterator[Row]:
    """Reads the rows of a file with a table.

    Args:
      reading: the file and reading options.

    Yields:
      Each row as {column: value}.

    Raises:
      DataError: the file cannot be read, or a row is invalid in strict mode.
    """
    path = reading.path
    extension = os.path.splitext(without_compression(path))[1].lower()
    if extension == ".parquet":
        require_extra("pyarrow", "parquet", path)
        yield from _parquet_rows(path)
        return
    with open_text(path, newline="") as file:
        if extension in (".jsonl", ".json", ".ndjson"):
            yield from _json_rows(reading, file)
        else:
            own = "," if extension == ".csv" else "\t"
            first = file.readline()
            require_data(
                not first.lstrip().startswith(('{"', "[{")),
                path,
                f"a table, as {extension or 'no extension'} says",
                "JSON; rename the file to .jsonl",
            )
            separator = _separator(reading, first, own)
            is_quoted = own == "," or separator != own
            lines = itertools.chain([first], file)
            yield from _named(reading, _records(reading, lines, separator, is_quoted))


def needed_columns(reading: Reading) -> set[str]:
    """Returns the columns that a table must have, as far as the settings name them."""
    settings = reading.settings
    if not settings.has_text_columns:
        return set()
    return {*settings.text_columns, *([settings.label_column] if reading.with_labels else [])}


def _separator(reading: Reading, first: str, own: str) -> str:
    """The separator of the format, or the one with which alone the first line is as expected."""

    def fields(separator: str) -> list[str]:
        try:
            return next(csv.reader([first], delimiter=separator, strict=True), [])
        except csv.Error:
            return []

    def fits(separator: str) -> bool:
        found = fields(separator)
        given = reading.settings.columns
        if given and len(found) == len(given):
            return True
        return len(found) > 1 and needed_columns(reading) <= set(found) and not given

    if len(first.split(own) if own == "\t" else fields(own)) > 1:
        return own
    other = next((s for s in _SEPARATORS if s != own and fits(s)), own)
    if other != own:
        reading.say(
            f"columns are separated by {_SEPARATORS[other]}, as the first line says, not by "
            f"{_SEPARATORS[own]}"
        )
    return other


# A field with quotes in quotes, as a writer of CSV makes it.
_QUOTED = re.compile(r'"(?:[^"]*"")+[^"]*"')

# (line of the file where it begins, number of lines, fields)
Record = tuple[int, int, list[str]]


def _records(
    reading: Reading, lines: Iterable[str], separator: str, is_quoted: bool
) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)
    quoting: Any = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=separator, strict=True, quoting=quoting)
    start, num_quoted = 1, 0
    try:
        for row in reader:
            num_quoted += not is_quoted and any(map(_QUOTED.fullmatch, row))
            yield start, reader.line_num - start + 1, row
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{reading.path}, line {start}: expected a row whose quotes are closed, got a quote "
            f"that opens there and, up to line {reader.line_num}, is not closed at the end of a "
            f"field ({error}); quotes within quotes are written twice"
        ) from None
    if num_quoted and reading.with_labels:
        reading.say(
            f"{num_quoted} lines have fields in quotes, which TSV reads as part of the text; "
            "with the extension .csv, quotes are read, and tabs are separators, too"
        )


def _named(reading: Reading, records: Iterator[Record]) -> Iterator[Row]:
    path = reading.path
    first = next(records, None)
    if first is None or not first[2]:
        raise DataError(f"{path}: expected a header with column names, got an empty file")
    columns = _header(reading, first[2])
    if columns is None:
        columns = _columns_without_header(reading, first[2])
        records = itertools.chain([first], records)
    repeated = {column for column in columns if column and columns.count(column) > 1}
    if repeated:
        raise DataError(f"{path}: expected each column once, got {min(repeated)!r} again")
    for line, num_lines, fields in records:
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


def _header(reading: Reading, fields: list[str]) -> list[str] | None:
    """The names in the first row; None if it is not a header, as `task.columns` says."""
    given = list(reading.settings.columns)
    if not given:
        return fields
    needed = needed_columns(reading)
    if fields == given or (reading.settings.text_columns and needed <= set(fields)):
        reading.say(f"the first line is read as a header: {listed(fields)}")
        return fields
    return None


def _columns_without_header(reading: Reading, fields: list[str]) -> list[str]:
    """`task.columns`; in a file to predict that has no other column than texts, those."""
    given, texts = list(reading.settings.columns), list(reading.settings.text_columns)
    if reading.with_labels or len(fields) == len(given) or not texts:
        return given
    if len(fields) == len(texts):
        reading.say(f"columns are read as {listed(texts)}")
        return texts
    raise DataError(
        f"{reading.path}: expected a header with {listed(texts)}, or {len(texts)} columns "
        f"({listed(texts)}), or {len(given)} columns as in training ({listed(given)}), got "
        f"{len(fields)} columns"
    )


def _json_rows(reading: Reading, file) -> Iterator[Row]:
    first = file.readline()
    if first.lstrip().startswith("["):
        yield from _json_array(reading, first + file.read())
        return
    require_data(
        not first.lstrip().startswith("{") or "}" in first,
        reading.path,
        "JSON lines, with one object on each line, or an array of objects",
        "one object over several lines",
    )
    for place, line in enumerate(itertools.chain([first], file), start=1):
        where = f"{reading.path}, line {place}"
        if not line.strip():
            require_data(not reading.strict, where, "a row", "an empty line")
            reading.counts["blank_lines"] += 1
            continue
        try:
            yield conform(parse_json(line, where), dict[str, Any], where)
        except DataError as error:
            reading.reject("malformed_rows", str(error))


def _json_array(reading: Reading, text: str) -> Iterator[Row]:
    tree = conform(parse_json(text, reading.path), list[Any], reading.path)
    for number, row in enumerate(tree, start=1):
        if isinstance(row, dict):
            yield row
        else:
            reading.reject(
                "malformed_rows",
                f"{reading.path}, row {number}: expected an object, got {shown(row)}",
            )


def _parquet_rows(path: str) -> Iterator[Row]:
    from pyarrow import ArrowException, parquet

    try:
        with file_system.open(path, "rb") as file:
            for batch in parquet.ParquetFile(file).iter_batches():
                for row in batch.to_pylist():
                    yield {name: _json_value(value) for name, value in row.items()}
    except ArrowException as error:
        raise DataError(f"{path}: expected a Parquet file, got another one: {error}") from None


def _json_value(value: Any) -> Any:
    """A value of Parquet; what JSON does not have, such as a date, as text."""
    known = str | int | float | list | dict | bytes
    return value if value is None or isinstance(value, known) else str(value)
