"""Formats of files with rows of named values: which format a file has, and who reads it.

The module of a format is imported when a file has the format: `ROW_FILES` in
`official.xlnet.configs.registry` lists the endings and first bytes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

from data_prep.tasks.rows import Row
from official.xlnet.configs.file_patterns import (
    matching_starts,
    pattern_of_ending,
    register_patterns,
)
from official.xlnet.configs.registry import ROW_FILES
from official.xlnet.data.reading import Reading
from official.xlnet.files.compression import ending, open_stream
from official.xlnet.files.text import BYTE_ORDER_MARK

_DETECTION_BYTES = 1 << 12
_DEFAULT = "*.tsv"  # Pattern of the format of all other files.


@dataclasses.dataclass
class RowFormat:
    """A format of files with rows; see `register_row_format`.

    Attributes:
      rows: yields the rows of a file.
      endings: endings of file names, in lower case; of a compressed file, the ending before.
      mark: first bytes of a file, after white space.
      is_marked: whether the first bytes, which begin with `mark`, are of this format; None: always.
      is_always_table: whether tasks whose files usually have a format of their own, such as CoNLL,
        read a file in this format as a table.
      has_labels: whether a file in this format can have labels.
    """

    rows: Callable[[Reading], Iterator[Row]]
    endings: tuple[str, ...] = ()
    mark: bytes = b""
    is_marked: Callable[[bytes], bool] | None = None
    is_always_table: bool = False
    has_labels: bool = True


def register_row_format(**facts: Any) -> Callable[[Callable], Callable]:
    """Decorator that registers a function as the reader of a format of files with rows.

    The function takes a `Reading` and yields each row as a dictionary of values by column. The
    format then holds for files to train and evaluate on, predict, embed and score.

    Args:
      **facts: attributes of `RowFormat`: `endings` and `mark`, by which a file is recognized, and
        others. An ending or mark that another format has remains with that format.

    Example:
      >>> @register_row_format(endings=(".words",))
      ... def word_rows(reading):
      ...     with open(reading.path, encoding="utf-8") as file:
      ...         for line in file:
      ...             yield {"text": line.strip()}
    """

    def add(rows: Callable) -> Callable:
        row_format: Any = RowFormat(rows, **facts)
        functools.update_wrapper(row_format, rows)
        register_patterns(ROW_FILES, row_format.endings, row_format.mark, row_format)
        return rows

    return add


def row_format_of(path: str) -> RowFormat | None:
    """Returns the format that a file has by its ending or else its first bytes; None: no known one.

    Args:
      path: path of the file.
    """
    pattern = pattern_of_ending(ending(path))
    if ROW_FILES.is_known(pattern):
        return ROW_FILES[pattern]
    with open_stream(path) as (stream, _):
        start = stream.read(_DETECTION_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip()
    for row_format in matching_starts(ROW_FILES, start):
        if row_format.is_marked is None or row_format.is_marked(start):
            return row_format
    return None


def read_file(reading: Reading) -> Iterator[Row]:
    """Reads the rows of a file with a table; files of no known format are read as TSV.

    Args:
      reading: the file and reading options.

    Yields:
      Each row as {column: value}.

    Raises:
      DataError: the file cannot be read, or a row is invalid in strict mode.
    """
    row_format = row_format_of(reading.path) or ROW_FILES[_DEFAULT]
    yield from row_format.rows(reading)
