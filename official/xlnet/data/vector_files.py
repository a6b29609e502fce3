"""Files of vectors: .npy, JSON lines or Parquet, written batch by batch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files.atomic import replaced
from official.xlnet.files.json_files import json_text

Rows = Sequence[Mapping[str, Any]]
Write = Callable[[Rows, np.ndarray], None]
ENDINGS = (".npy", ".jsonl", ".parquet")


@contextlib.contextmanager
def vector_file(path: str, num_rows: int, width: int) -> Iterator[Write]:
    """Context manager that opens a file of vectors; the file appears when the block succeeds.

    Args:
      path: path of the file, whose ending is the format: `.npy`, one float32 array [rows, width];
        `.jsonl`, objects with `vector` and what else a row has; `.parquet`, the same as columns.
      num_rows: number of rows that will be written, for `.npy`.
      width: length of a vector.

    Yields:
      A function that appends rows: it takes what is beside their vectors, strings and integers by
        column, and the vectors, float32 [batch, width].

    Raises:
      ConfigError: the ending of the path is unknown, or a package for it is not installed.

    Example:
      >>> with vector_file("vectors.npy", num_rows=2, width=3) as write:
      ...   write([{"text": "a"}, {"text": "b"}], np.zeros([2, 3], np.float32))
    """
    check_ending(path)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    opened = {".npy": _npy, ".jsonl": _json_lines, ".parquet": _parquet}[ending_of(path)]
    with replaced(path) as temporary, opened(temporary, num_rows, width) as write:
        yield write


def check_ending(path: str) -> None:
    """Raises `ConfigError` if files with the ending of a path cannot be written."""
    if ending_of(path) not in ENDINGS:
        raise ConfigError(f"{path}: expected a file ending in {', '.join(ENDINGS)}")
    if ending_of(path) == ".parquet":
        require_extra("pyarrow", "parquet", path)


def ending_of(path: str) -> str:
    """Returns the ending of a path, `.npy` for example."""
    return os.path.splitext(path)[1]


@contextlib.contextmanager
def _npy(path: str, num_rows: int, width: int) -> Iterator[Write]:
    with open(path, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (num_rows, width)}
        np.lib.format.write_array_header_1_0(file, header)

        def write(rows, vectors):
            file.write(np.ascontiguousarray(vectors, "<f4").tobytes())

        yield write


@contextlib.contextmanager
def _json_lines(path: str, num_rows: int, width: int) -> Iterator[Write]:
    with open(path, "w", encoding="utf-8") as file:

        def write(rows, vectors):
            for row, vector in zip(rows, vectors, strict=True):
                # The shortest decimals that give the float32 back.
                row = {**row, "vector": [float(str(x)) for x in vector]}
                file.write(json_text(row) + "\n")

        yield write


@contextlib.contextmanager
def _parquet(path: str, num_rows: int, width: int) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    vector_type = pyarrow.list_(pyarrow.float32(), width)
    with contextlib.ExitStack() as stack:
        writer: Any = None

        def write(rows, vectors):
            nonlocal writer
            if not rows:
                return
            found = pyarrow.Table.from_pylist(list(rows))
            column = pyarrow.FixedSizeListArray.from_arrays(vectors.ravel(), type=vector_type)
            table = found.append_column("vector", column)
            writer = writer or stack.enter_context(parquet.ParquetWriter(path, table.schema))
            writer.write_table(table)

        yield write
        if writer is None:
            parquet.write_table(pyarrow.table({"vector": pyarrow.array([], vector_type)}), path)
