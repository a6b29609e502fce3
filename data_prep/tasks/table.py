"""One table of named rows from every source: files, frames, columns, lists, data sets.

Names decide what a column is, whoever made the table. Rows of Python without names (tuples, lists,
strings) get those that the task gives them. Values keep their types; what pandas, NumPy, Arrow and
TensorFlow write for a missing value is None.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import enum
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.tasks.row_formats import read_file, row_format_of
from data_prep.tasks.rows import Row, class_names, distinct, listed
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import ArgumentTypeError, DataError, require_data, require_extra

_FRAMES = ("__arrow_c_stream__", "__dataframe__")
_CONVERSIONS = ("to_pylist", "tolist", "to_list", "numpy")  # Of arrays, columns and tensors.
# The index of `DataFrame.itertuples` and `to_records`: its name, in a named tuple, in a record.
_INDEX = (("Index", True, False), ("index", False, True))
_ADVICE = {"tuple": "; a tuple is one example with several texts", "set": "; a set has no order"}
_NO_VALUE = ("NAType", "NaTType")  # Of pandas; they are neither equal to nothing nor to themselves.


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
    rows = _opened(reading) if reading.rows is not None else _stored(reading)
    width: int | None = None
    for row_number, row in enumerate(rows, start=1):
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


def plain(value: Any) -> Any:
    """A value as JSON has it: a string, number, truth value, list or object; None if missing.

    Example:
      >>> plain(np.float32("nan")), plain(b"text"), plain((np.int64(3), "a"))
      (None, 'text', [3, 'a'])
    """
    if isinstance(value, str):
        return str.__str__(value)  # Not as a class of its own, which is shown otherwise.
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, decimal.Decimal | np.floating):
        value = float(value)
    for number_type in (int, float):
        if isinstance(value, number_type) and type(value) is not bool:
            value = number_type(value)  # Not as a class of its own, as above.
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "mM":
        # In nanoseconds, `tolist` returns integers.
        value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
        return value
    if isinstance(value, Mapping):
        return {name: plain(element) for name, element in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    if _is_column(value):
        return plain(next(getattr(value, name) for name in _CONVERSIONS if hasattr(value, name))())
    is_missing = type(value).__name__ in _NO_VALUE or (isinstance(value, float) and value != value)
    return None if is_missing else value


def _with_names(row: Any) -> dict[Any, Any] | None:
    """A row with names as {name: value}: a mapping, named tuple, dataclass, structured value."""
    if hasattr(row, "_asdict"):
        return row._asdict()
    if dataclasses.is_dataclass(row):
        return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
    names = row.keys() if hasattr(row, "keys") else _field_names(row)
    return None if names is None else {name: row[name] for name in names}


def _field_names(array: Any) -> tuple[str, ...] | None:
    return getattr(getattr(array, "dtype", None), "names", None)


def _is_column(value: Any) -> bool:
    """Whether a value is an array, column or tensor of NumPy, pandas, Arrow, Polars, TensorFlow."""
    return any(hasattr(value, name) for name in _CONVERSIONS) and (
        hasattr(value, "dtype") or hasattr(value, "type")
    )


def _class_of(value: Any, names: Sequence[str], labels: Sequence[str], where: str) -> Any:
    """The names of classes for their numbers; None for a hidden label (-1)."""
    if isinstance(value, list):
        return [_class_of(element, names, labels, where) for element in value]
    if not isinstance(value, int) or value < 0:
        return None if isinstance(value, int) else value
    require_data(value < len(names), where, f"a class from 0 to {len(names) - 1}", value)
    has_numbers = str(value) in labels and names[value] not in labels  # `task.labels` are numbers.
    return value if has_numbers else names[value]


def _opened(reading: Reading) -> Iterable[Any]:
    """The rows of a table of Python: with names, or other values if the columns have none."""
    source, where = reading.rows, reading.path
    if type(source).__name__ == "LazyFrame":  # Of Polars.
        source = source.collect()
    if hasattr(source, "column_names") and hasattr(source, "features"):  # HF datasets.
        table_format = getattr(source, "format", {"type": None})
        if (
            table_format["type"] == "custom"
        ):  # Rows of a transform; nobody says what its numbers are.
            return source
        reading.classes = class_names(source.features or {})
        columns = {"columns": table_format["columns"]} if "columns" in table_format else {}
        return source.with_format(None, **columns)
    if isinstance(source, Mapping):
        return _of_columns(source.items(), where)
    if hasattr(source, "itertuples"):  # pandas.
        has_names = list(source.columns) != list(range(len(source.columns)))
        rows = source.itertuples(index=False, name=None)
        return _of_columns(source.items(), where) if has_names else rows
    if hasattr(source, "iter_rows"):  # Polars, some of whose types Arrow lacks.
        return source.iter_rows(named=True)
    if hasattr(source, "as_numpy_iterator"):  # tf.data, TFDS.
        from tensorflow import nest

        ranks = [spec.shape.rank or 0 for spec in nest.flatten(source.element_spec)]
        is_batched = min(ranks) > reading.settings.rank_of_rows
        require_data(not is_batched, where, "a row in each element", "batches; use .unbatch()")
        return source.as_numpy_iterator()
    if hasattr(source, "scanner"):  # An Arrow data set.
        source = source.scanner().to_reader()
    if _is_column(source):
        return source if _field_names(source) else plain(source)
    if any(hasattr(source, name) for name in _FRAMES):
        require_extra("pyarrow", "parquet", where)
        from pyarrow import RecordBatchReader, interchange

        from data_prep.tasks.arrow_files import arrow_rows

        has_stream = hasattr(source, _FRAMES[0])
        table = source if has_stream else interchange.from_dataframe(source)
        reader = RecordBatchReader.from_stream(table)
        return arrow_rows(reading, reader.schema, reader)
    refused = str | bytes | tuple | set | frozenset | os.PathLike
    if isinstance(source, refused) or not isinstance(source, Iterable):
        type_name = type(source).__name__
        advice = _ADVICE.get(type_name, "")
        raise ArgumentTypeError(
            f"{where}: expected a list of rows or a table, got {type_name} {source!r:.60}{advice}"
        )
    return source


def _of_columns(items: Iterable[tuple[Any, Any]], where: str) -> Iterable[Row]:
    """The rows of {name: column}."""
    pairs = [(name, plain(values)) for name, values in items]
    names, columns = distinct((name for name, _ in pairs), where), [values for _, values in pairs]
    for values in columns:
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            splits = f"of splits ({listed(names)}); pass one of them"
            got = splits if isinstance(values, Iterable) else "whose values are not columns"
            if isinstance(values, str):
                got = "whose values are texts; pass a list of such rows"
            raise ArgumentTypeError(f"{where}: expected {{column: list}}, got a mapping {got}")
    if len({len(values) for values in columns}) > 1:
        sizes = ", ".join(f"{name}: {len(v)}" for name, v in zip(names, columns, strict=True))
        raise DataError(f"{where}: expected columns of equal length, got {sizes}")
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _stored(reading: Reading) -> Iterable[Row]:
    """The rows of a file, or of a TFDS data set on disk."""
    if not reading.path.startswith("tfds:"):
        return read_file(reading)
    from data_prep.corpus.tfds_splits import example_ranges

    example_ranges(reading.path, part_size=0)  # Raises DataError if the data set is not on disk.
    import tensorflow_datasets as tfds

    _, name, *split = reading.path.split(":", 2)  # A slice has colons, too: `train[:80%]`.
    builder = tfds.builder(name)
    reading.classes = class_names(builder.info.features)
    dataset = builder.as_dataset(split=(split or ["train"])[0], shuffle_files=False)
    return tfds.as_numpy(dataset)
