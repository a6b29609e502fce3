"""One table of named rows from every source: files, frames, columns, lists, data sets.

Names decide what a column is, whoever made the table. Rows of Python without names (tuples, lists,
strings) get those that the task gives them. Values keep their types; what pandas, NumPy, Arrow and
TensorFlow write for a missing value is None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from data_prep.tasks.plain_values import field_names, plain
from data_prep.tasks.row_formats import read_file, row_format_of
from data_prep.tasks.rows import Row
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import require_data

# The index of `DataFrame.itertuples` and `to_records`: its name, in a named tuple, in a record.
_INDEX = (("Index", True, False), ("index", False, True))


def read_rows(reading: Reading) -> Iterator[Row]:
    """Reads the rows of a table.

    Args:
      reading: the file, or the rows of Python, and reading options.

    Yields:
      Each row as {column: value}. An example of the task's own class is passed on as it is.

    Raises:
      DataError: the table cannot be read, two columns have one name, or a row is invalid in strict
        mode.
      TypeError: the source is not a table.
    """
    if reading.rows is None:
        rows: Iterable[Any] = _stored(reading)
    else:
        from data_prep.tasks.python_tables import python_rows

        rows = python_rows(reading)
    width: int | None = None
    for row_number, row in enumerate(rows, start=reading.num_before + 1):
        where = f"{reading.path}, row {row_number}"
        if isinstance(row, Example):
            yield row  # type: ignore[misc]
            continue
        named = _with_names(row)
        if named is None:
            named = reading.settings.values_by_column(plain(row), reading.with_labels, where)
            width = len(named) if width is None else width
            require_data(width == len(named), where, f"{width} values, as above", len(named))
        elif (next(iter(named), ""), hasattr(row, "_fields"), isinstance(row, np.record)) in _INDEX:
            reading.unread[next(iter(named))] = "pandas index"
        settings = reading.settings
        used = {*settings.text_columns, settings.label_column, settings.group_column}
        left_out = reading.unread.keys() - used
        row = {str(n): plain(value) for n, value in named.items() if n not in left_out}
        if not settings.has_number_labels:
            for name in reading.classes.keys() & row.keys():
                row[name] = _class_of(row[name], reading.classes[name], settings.labels, where)
        yield row


def is_table(reading: Reading) -> bool:
    """Whether a source is a table for tasks whose own format is another one."""
    if reading.rows is not None:
        return True
    row_format = row_format_of(reading.path)
    if row_format is None or not row_format.is_always_table:
        return False
    return row_format.has_labels or not reading.with_labels


def _with_names(row: Any) -> dict[Any, Any] | None:
    """A row with names as {name: value}: a mapping, named tuple, dataclass, structured value."""
    if hasattr(row, "_asdict"):
        return row._asdict()
    if dataclasses.is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    names = row.keys() if hasattr(row, "keys") else field_names(row)
    return None if names is None else {name: row[name] for name in names}


def _class_of(value: Any, names: Sequence[str], labels: Sequence[str], where: str) -> Any:
    """The names of classes for their numbers; None for a hidden label (-1)."""
    if isinstance(value, list):
        return [_class_of(element, names, labels, where) for element in value]
    if not isinstance(value, int) or value < 0:
        return None if isinstance(value, int) else value
    require_data(value < len(names), where, f"a class from 0 to {len(names) - 1}", value)
    has_numbers = str(value) in labels and names[value] not in labels  # `task.labels` are numbers.
    return value if has_numbers else names[value]


def _stored(reading: Reading) -> Iterable[Row]:
    """The rows of a file, or of a TFDS data set on disk."""
    if not reading.path.startswith("tfds:"):
        return read_file(reading)
    from data_prep.tasks.python_tables import tfds_rows

    return tfds_rows(reading)
