"""Readers of tables: TSV, CSV and JSON lines with named columns, and TFDS data sets.

TSV lines are split at tabs without quoting, as required for GLUE; CSV uses quoting. Files may be
compressed with gzip. Columns named `id`, `guid`, `idx` or `index` are not used as text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections.abc import Iterator

from data_prep.corpus.corpus import find_shards
from data_prep.settings import ReadOptions
from official.xlnet.data.examples import Label, TextExample
from official.xlnet.data.reading import Reading, register_reader
from official.xlnet.errors import DataError

Row = dict[str, str]
_LABEL_SEPARATOR = ","  # Separates the classes of a multi-label row.
_MAX_SHOWN_CHARS = 60  # Maximum length of a line quoted in an error message.
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
    for number, row in enumerate(read_rows(reading), start=1):
        where = f"{reading.path}, row {number}"
        if not text_columns:
            text_columns = text_columns_of(reading, row)
        label = row.get(label_column) if reading.with_labels else None
        if reading.with_labels and label is None:
            raise DataError(
                f"{reading.path}: expected a column {label_column!r}, got {', '.join(row)}; "
                "set task.label_column to use another column"
            )
        try:
            value = None if label is None else parse_label(label, kind)
        except ValueError:
            reading.reject("malformed_rows", f"{where}: expected a number, got {label!r}")
            continue
        yield TextExample(
            id=str(next((row[c] for c in _ID_COLUMNS if row.get(c)), number)),
            texts=tuple(str(row[column]) for column in text_columns),
            label=value,
        )


def parse_label(label, kind: str) -> Label:
    """Parses the label of a row.

    Args:
      label: the value of the label column.
      kind: the task type.

    Returns:
      A number for `regression`, a tuple of class names for `multi_label` (from a comma-separated
      string or a list), else a class name.

    Raises:
      ValueError: the label of a regression row is not a number.

    Example:
      >>> parse_label("news, sports", "multi_label")
      ('news', 'sports')
    """
    if kind == "regression":
        return float(label)
    if kind == "multi_label":
        parts = label if isinstance(label, list) else str(label).split(_LABEL_SEPARATOR)
        return tuple(str(part).strip() for part in parts if str(part).strip())
    return str(label)


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
    name = path.removesuffix(".gz")
    opened = gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")  # noqa: SIM115
    try:
        with opened as binary, io.TextIOWrapper(binary, "utf-8-sig", newline="") as file:
            if name.endswith((".jsonl", ".json", ".ndjson")):
                yield from _json_rows(reading, file)
            else:
                rows = _csv_fields(file) if name.endswith(".csv") else _tsv_fields(file)
                yield from _named(reading, rows)
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _tsv_fields(file) -> Iterator[list[str]]:
    for line in file:
        yield line.rstrip("\r\n").split("\t")


def _csv_fields(file) -> Iterator[list[str]]:
    csv.field_size_limit(sys.maxsize)
    yield from csv.reader(file)


def _named(reading: Reading, rows: Iterator[list[str]]) -> Iterator[Row]:
    columns = list(reading.settings.columns) or next(rows, [])
    if not columns or columns == [""]:
        raise DataError(f"{reading.path}: expected a header with column names, got an empty file")
    first_line = 1 if reading.settings.columns else 2
    for number, fields in enumerate(rows, start=first_line):
        if fields in ([], [""]):
            if reading.strict:
                raise DataError(f"{reading.path}, line {number}: expected a row, got an empty line")
            reading.counts["blank_lines"] += 1
        elif len(fields) != len(columns):
            reading.reject(
                "malformed_rows",
                f"{reading.path}, line {number}: expected {len(columns)} columns "
                f"({', '.join(columns)}), got {len(fields)}",
            )
        else:
            yield dict(zip(columns, fields, strict=True))


def _json_rows(reading: Reading, file) -> Iterator[Row]:
    for number, line in enumerate(file, start=1):
        try:
            row = json.loads(line) if line.strip() else None
        except json.JSONDecodeError:
            row = line
        if isinstance(row, dict):
            yield row
        else:
            shown = line.strip()[:_MAX_SHOWN_CHARS]
            reading.reject(
                "malformed_rows",
                f"{reading.path}, line {number}: expected a JSON object, got {shown!r}",
            )


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
