"""Readers of tables: TSV, CSV and JSON lines with named columns, and TFDS data sets.

TSV lines are split at tabs without quoting, as required for GLUE; CSV uses quoting. Files may be
compressed with gzip. Columns named `id`, `guid`, `idx` or `index` are not used as text.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from typing import Any

from data_prep.corpus.corpus import find_shards
from data_prep.settings import ReadOptions
from data_prep.tasks.rows import Row, number, text, texts, usable
from official.xlnet.data.examples import Label, TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError
from official.xlnet.files.compression import without_compression
from official.xlnet.files.json_files import parse_json
from official.xlnet.files.schema import conform
from official.xlnet.files.text import open_text

_LABEL_SEPARATOR = ","  # Separates the classes of a multi-label row.
_ID_COLUMNS = ("id", "guid", "idx", "index")


@register_reader("classification")
@register_reader("multi_label")
@register_reader("regression")
def read_texts(reading: Reading) -> Iterator[TextExample]:
    """Reads the examples of a classification, multi-label or regression table.

    Args:
      reading: the file and reading options.

    Yields:
      One example per row.

    Raises:
      DataError: a column is missing, or a row is invalid in strict mode.
    """
    text_columns: tuple[str, ...] = ()
    label_column, kind = reading.settings.label_column, reading.settings.name

    def example_of(row: Row, number: int) -> TextExample:
        nonlocal text_columns
        if not text_columns:
            text_columns = text_columns_of(reading, row)
            if reading.with_labels and label_column not in row:
                raise DataError(
                    f"{reading.path}: expected a column {label_column!r}, got {', '.join(row)}; "
                    "set task.label_column to use another column"
                )
        return TextExample(
            id=next((text(row, c) for c in _ID_COLUMNS if row.get(c)), str(number)),
            texts=tuple(text(row, column) for column in text_columns),
            label=read_label(row, label_column, kind) if reading.with_labels else None,
        )

    return usable(reading, read_rows(reading), example_of)


def read_label(row: Row, column: str, kind: str) -> Label:
    """Reads the label of a row.

    Args:
      row: the row.
      column: the label column.
      kind: the task type.

    Returns:
      A number for `regression`, a tuple of class names for `multi_label` (from a comma-separated
      string or a list), else a class name.

    Raises:
      WrongRowError: there is no label, or the label of a regression row is not a number.

    Example:
      >>> read_label({"label": "news, sports"}, "label", "multi_label")
      ('news', 'sports')
    """
    if kind == "regression":
        return number(row, column)
    if kind == "multi_label":
        is_list = isinstance(row.get(column), list)
        parts = texts(row, column) if is_list else text(row, column).split(_LABEL_SEPARATOR)
        return tuple(part.strip() for part in parts if part.strip())
    return text(row, column)


def text_columns_of(reading: Reading, row: Row) -> tuple[str, ...]:
    """Returns the names of the text columns of a table.

    Args:
      reading: the file and reading options; `settings.text_columns` takes precedence.
      row: the first row.

    Returns:
      The configured columns, or all columns except the label and ids.

    Raises:
      DataError: a configured column is missing, or there is no text column.
    """
    settings = reading.settings
    for column in settings.text_columns:
        if column not in row:
            raise DataError(
                f"{reading.path}: expected a column {column!r}, got {', '.join(row)}; "
                "set task.text_columns to use other columns"
            )
    rest = [c for c in row if c != settings.label_column and c.lower() not in _ID_COLUMNS]
    if not (settings.text_columns or rest):
        raise DataError(f"{reading.path}: expected a column of text, got {', '.join(row)}")
    return settings.text_columns or tuple(rest)


def read_rows(reading: Reading) -> Iterator[Row]:
    """Reads the rows of a table.

    Args:
      reading: the file and reading options.

    Yields:
      Each row as {column: value}.

    Raises:
      DataError: the file cannot be read, or a row is invalid in strict mode.
    """
    path = reading.path
    if path.startswith("tfds:"):
        yield from _tfds_rows(path)
        return
    extension = os.path.splitext(without_compression(path))[1].lower()
    try:
        with open_text(path, newline="") as file:
            if extension in (".jsonl", ".json", ".ndjson"):
                yield from _json_rows(reading, file)
            else:
                rows = _csv_fields(file) if extension == ".csv" else _tsv_fields(file)
                yield from _named(reading, rows)
    except csv.Error as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _tsv_fields(file) -> Iterator[list[str]]:
    for line in file:
        yield line.rstrip("\r\n").split("\t")


def _csv_fields(file) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    yield from csv.reader(file)


def _named(reading: Reading, rows: Iterator[list[str]]) -> Iterator[Row]:
    columns = list(reading.settings.columns) or next(rows, [])
    repeated = {column for column in columns if column and columns.count(column) > 1}
    if repeated:
        raise DataError(f"{reading.path}: expected each column once, got {min(repeated)!r} again")
    if not columns or columns == [""]:
        raise DataError(f"{reading.path}: expected a header with column names, got an empty file")
    first_line = 1 if reading.settings.columns else 2
    for line, fields in enumerate(rows, start=first_line):
        if fields in ([], [""]):
            if reading.strict:
                raise DataError(f"{reading.path}, line {line}: expected a row, got an empty line")
            reading.counts["blank_lines"] += 1
        elif len(fields) != len(columns):
            reading.reject(
                "malformed_rows",
                f"{reading.path}, line {line}: expected {len(columns)} columns "
                f"({', '.join(columns)}), got {len(fields)}",
            )
        else:
            yield dict(zip(columns, fields, strict=True))


def _json_rows(reading: Reading, file) -> Iterator[Row]:
    for place, line in enumerate(file, start=1):
        where = f"{reading.path}, line {place}"
        try:
            row = conform(parse_json(line, where), dict[str, Any], where)
        except DataError as error:
            reading.reject("malformed_rows", str(error))
            continue
        yield row


def _tfds_rows(path: str) -> Iterator[Row]:
    import tensorflow_datasets as tfds

    find_shards([path], ReadOptions())  # Raises DataError if the data set is not on disk.
    _, name, *split = path.split(":")
    builder = tfds.builder(name)
    dataset = builder.as_dataset(split=(split or ["train"])[0], shuffle_files=False)
    for record in tfds.as_numpy(dataset):
        yield {
            column: _tfds_value(builder.info.features[column], value)
            for column, value in record.items()
        }


def _tfds_value(feature, value):
    """Class name of a label (None for the hidden labels of test sets); other values as string."""
    if hasattr(feature, "int2str"):
        return feature.int2str(int(value)) if value >= 0 else None
    return value.decode() if isinstance(value, bytes) else str(value)
