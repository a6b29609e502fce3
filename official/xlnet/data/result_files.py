"""Files of results, in a format by their ending: tables, and vectors written batch by batch."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.errors import ConfigError, require_extra
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
    """Raises `ConfigError` for a path whose ending is that of a table."""
    ending = os.path.splitext(path or "")[1]
    if ending in TABLES and ending != ".jsonl":
        raise ConfigError(f"output: expected a file of JSON lines, e.g. rows.jsonl, got {path}")


def write_rows(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes a table atomically.

    TSV is not quoted, as this package reads it: tabs and line ends within a value are spaces.

    Args:
      path: the file, whose ending is one of `TABLES`.
      rows: {column: value}.

    Raises:
      ConfigError: see `check_ending`.

    Example:
      >>> write_rows("words.tsv", [{"word": "The", "surprisal": 4.5}])
    """
    import pandas as pd

    ending, frame = check_ending(path, TABLES), pd.DataFrame(rows)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_write(path) as file:
        if ending == ".parquet":
            frame.to_parquet(file, index=False)
        elif ending == ".jsonl":
            file.writelines(json_text(row).encode() + b"\n" for row in rows)
        elif ending == ".csv":
            frame.to_csv(file, index=False)
        else:
            frame = frame.replace(r"[\t\r\n]", " ", regex=True)
            frame.to_csv(file, sep="\t", index=False, quoting=csv.QUOTE_NONE)


@contextlib.contextmanager
def vector_file(path: str, num_rows: int, width: int) -> Iterator[Write]:
    """Context manager that opens a file of vectors; the file appears when the block succeeds.

    Args:
      path: path of the file, whose ending is the format: `.npy`, one float32 array [rows, width];
        `.jsonl`, objects with `vector` and the other values of a row; `.parquet`, the same as
        columns.
      num_rows: number of rows that will be written, for `.npy`.
      width: length of a vector.

    Yields:
      A function that appends rows: it takes the other values of each row, strings and integers by
        column, and the vectors, float32 [batch, width].

    Raises:
      ConfigError: the ending of the path is unknown, or a package for it is not installed.

    Example:
      >>> with vector_file("vectors.npy", num_rows=2, width=3) as write:
      ...   write([{"text": "a"}, {"text": "b"}], np.zeros([2, 3], np.float32))
    """
    ending, vector_type = check_ending(path, VECTORS), None
    if ending == ".parquet":
        import pyarrow
        from pyarrow import parquet

        vector_type = pyarrow.list_(pyarrow.float32(), width)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_write(path) as file, contextlib.ExitStack() as stack:
        writer: Any = None
        if ending == ".npy":
            header = {"descr": "<f4", "fortran_order": False, "shape": (num_rows, width)}
            np.lib.format.write_array_header_1_0(file, header)

        def write(rows, vectors):
            nonlocal writer
            if ending == ".npy":
                file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            elif ending == ".jsonl":
                for row, vector in zip(rows, vectors, strict=True):
                    # The shortest decimals that give the float32 back.
                    row = {**row, "vector": [float(str(x)) for x in vector]}
                    file.write(json_text(row).encode() + b"\n")
            elif rows:
                column = pyarrow.FixedSizeListArray.from_arrays(vectors.ravel(), type=vector_type)
                table = pyarrow.Table.from_pylist(list(rows)).append_column("vector", column)
                writer = writer or stack.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)

        yield write
        if ending == ".parquet" and writer is None:
            parquet.write_table(pyarrow.table({"vector": pyarrow.array([], vector_type)}), file)
