"""Files of results, in a format by their ending: tables, and vectors written batch by batch."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.errors import ConfigError, DataError, require_extra
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text

Write = Callable[[Sequence[Mapping[str, Any]], np.ndarray], None]
TABLES = (".tsv", ".csv", ".jsonl", ".parquet")
VECTORS = (".npy", ".jsonl", ".parquet")


def check_ending(path: str, endings: Sequence[str]) -> str:
    """Returns the ending of a path; raises `ConfigError` if such a file cannot be written.

    Args:
      path: the path.
      endings: the possible ones, `TABLES` for example.
    """
    ending = os.path.splitext(path)[1]
    if ending not in endings:
        raise ConfigError(f"{path}: expected a file ending in {', '.join(endings)}")
    if ending == ".parquet":
        require_extra("pyarrow", "parquet", path)
    return ending


def require_json_lines(path: str | None) -> None:
    """Raises `ConfigError` for a path that has the ending of a table."""
    ending = os.path.splitext(path or "")[1]
    if ending in TABLES and ending != ".jsonl":
        raise ConfigError(f"output: expected a file of JSON lines, e.g. rows.jsonl, got {path}")


def write_rows(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes a table atomically.

    In CSV and TSV a missing value is empty, and lists and objects are JSON. TSV is not quoted, as
    this package reads it: tabs and line ends within a value are spaces.

    Args:
      path: the file, whose ending is one of `TABLES`.
      rows: {column: value}.

    Raises:
      ConfigError: see `check_ending`.
      DataError: see `check_columns`.

    Example:
      >>> write_rows("words.tsv", [{"word": "The", "surprisal": 4.5}])
    """
    ending = check_ending(path, TABLES)
    types = column_types(path, rows) if ending == ".parquet" else {}
    columns = list(dict.fromkeys(name for row in rows for name in row))
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_write(path) as file:
        if ending == ".parquet":
            from pyarrow import Table, parquet, schema

            parquet.write_table(Table.from_pylist(list(rows), schema(types)), file)
        elif ending == ".jsonl":
            file.writelines(json_text(row).encode() + b"\n" for row in rows)
        else:
            line_of = _csv_line if ending == ".csv" else _tsv_line
            file.write(line_of(columns).encode())
            for row in rows:
                file.write(line_of([_field(row.get(name)) for name in columns]).encode())


def check_columns(path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raises `DataError` if a table cannot hold the columns of rows, before they are written.

    Args:
      path: the file.
      rows: some columns of its rows, with all of their values.
    """
    if os.path.splitext(path)[1] == ".parquet":
        column_types(path, rows)


def column_types(path: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns {column: its Arrow type}.

    Args:
      path: the Parquet file, for the message.
      rows: {column: value}.

    Raises:
      DataError: a column has values of several types.
    """
    import pyarrow

    types: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            types[name] = pyarrow.array([row.get(name) for row in rows]).type
        except (pyarrow.ArrowException, OverflowError) as error:
            expected = "values of one type; write .jsonl, or make them texts"
            raise DataError(f"{path}, column {name!r}: expected {expected}: {error}") from None
    return types


def _field(value: Any) -> str:
    """A value as a field of CSV or TSV."""
    if value is None or value != value:
        return ""
    return json_text(value) if isinstance(value, list | dict) else str(value)


def _csv_line(fields: Sequence[str]) -> str:
    line = io.StringIO()
    # Before Python 3.13, carriage returns are quoted only if they are in the line terminator.
    csv.writer(line, lineterminator="\r\n").writerow(fields)
    return line.getvalue().removesuffix("\r\n") + "\n"


def _tsv_line(fields: Sequence[str]) -> str:
    return "\t".join(re.sub(r"[\t\r\n]", " ", field) for field in fields) + "\n"


@contextlib.contextmanager
def vector_file(path: str, rows: Sequence[Mapping[str, Any]], width: int) -> Iterator[Write]:
    """Context manager that opens a file of vectors; the file appears when the block succeeds.

    Args:
      path: path of the file, whose ending is the format: `.npy`, one float32 array [rows, width];
        `.parquet`, `vector` and the other values of a row as columns.
      rows: rows as they will be written, without vectors: as many for `.npy`, with values of the
        same types for `.parquet`.
      width: length of a vector.

    Yields:
      A function that appends rows: it takes the other values of each row, by column, and the
        vectors, float32 [batch, width].

    Raises:
      ConfigError: the ending of the path is unknown, or a package for it is not installed.
      DataError: a column for `.parquet` has values of several types.

    Example:
      >>> rows = [{"text": "a"}, {"text": "b"}]
      >>> with vector_file("vectors.npy", rows, width=3) as write:
      ...   write(rows, np.zeros([2, 3], np.float32))
    """
    ending = check_ending(path, (".npy", ".parquet"))
    schema: Any = None
    if ending == ".parquet":
        import pyarrow

        vector_type = pyarrow.list_(pyarrow.float32(), width)
        schema = pyarrow.schema({**column_types(path, rows), "vector": vector_type})
    writer: Any = None
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_write(path) as file, contextlib.ExitStack() as stack:
        if ending == ".npy":
            header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), width)}
            np.lib.format.write_array_header_1_0(file, header)
        elif ending == ".parquet":
            from pyarrow import FixedSizeListArray, Table, parquet

            writer = stack.enter_context(parquet.ParquetWriter(file, schema))

        def write(rows, vectors):
            if ending == ".npy":
                file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            else:
                column = FixedSizeListArray.from_arrays(vectors.ravel(), type=vector_type)
                others = Table.from_pylist(list(rows), schema.remove(len(schema) - 1))
                writer.write_table(others.append_column("vector", column))

        yield write
