"""One table of named rows from every source: files, frames, columns, lists, data sets.

Names decide what a column is, whoever made the table. Rows of Python without names (tuples, lists,
strings) get those that the task gives them. Values keep their types; what pandas, NumPy, Arrow and
TensorFlow write for a missing value is None.
"""

from __future__ import annotations

import contextlib
import decimal
import enum
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from data_prep.corpus.corpus import find_shards
from data_prep.settings import ReadOptions
from data_prep.tasks.rows import Row, distinct, listed
from data_prep.tasks.table_files import ARROW, read_file
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import ArgumentTypeError, DataError, require_data
from official.xlnet.files.compression import ending

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
    if reading.rows is None:
        is_tfds = reading.path.startswith("tfds:")
        yield from _tfds_rows(reading.path) if is_tfds else read_file(reading)
        return
    width: int | None = None
    for number, row in enumerate(_opened(reading.rows, reading.path), start=1):
        where = f"{reading.path}, row {number}"
        if isinstance(row, Example):
            yield row  # type: ignore[misc]
            continue
        if not isinstance(row, Mapping):
            row = row.tolist() if isinstance(row, np.ndarray) else plain(row)
            row = reading.settings.named(row, reading.with_labels, where)
            require_data(width in (None, len(row)), where, f"{width} values, as above", len(row))
            width = len(row)
        yield {str(name): plain(value) for name, value in row.items()}


def is_table(reading: Reading) -> bool:
    """Whether a source is a table for tasks whose own format is another one."""
    extension = ending(reading.path)
    return reading.rows is not None or extension in (".jsonl", ".ndjson", *ARROW)


def plain(value: Any) -> Any:
    """A value as JSON has it: a string, number, truth value, list or object; None if missing.

    Example:
      >>> plain(np.float32("nan")), plain(b"text"), plain((np.int64(3), "a"))
      (None, 'text', [3, 'a'])
    """
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, str):
        return str.__str__(value)  # Not as a class of its own, which is shown otherwise.
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
        return value
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    is_missing = type(value).__name__ in _NO_VALUE or (isinstance(value, float) and value != value)
    return None if is_missing else value


def _opened(source: Any, where: str) -> Iterable[Any]:
    """The rows of a table of Python: mappings, or other values if the columns have no names."""
    if isinstance(source, Mapping):
        return _of_columns(source, where)
    if hasattr(source, "itertuples"):  # pandas.
        rows = source.itertuples(index=False, name=None)
        has_names = list(source.columns) != list(range(len(source.columns)))
        return _named(source.columns, rows, where) if has_names else rows
    if hasattr(source, "iter_rows"):  # Polars.
        return _named(source.columns, source.iter_rows(), where)
    if hasattr(source, "to_batches"):  # Arrow.
        distinct(source.schema.names, where)
        return (row for batch in source.to_batches() for row in batch.to_pylist())
    if hasattr(source, "column_names") and hasattr(source, "features"):  # HF datasets.
        return _named_classes(source.with_format(None), source.features or {})
    if hasattr(source, "as_numpy_iterator"):  # tf.data, TFDS.
        return source.as_numpy_iterator()
    if hasattr(source, "tolist"):  # An array or a Series.
        source = source.tolist()
    refused = str | bytes | tuple | set | frozenset | os.PathLike
    if isinstance(source, refused) or not isinstance(source, Iterable):
        kind, advice = type(source).__name__, ""
        if isinstance(source, tuple):
            advice = "; a tuple is one example with several texts"
        elif isinstance(source, set | frozenset):
            advice = "; a set has no order"
        raise ArgumentTypeError(
            f"{where}: expected a list of rows or a table, got {kind} {source!r:.60}{advice}"
        )
    return source


def _of_columns(source: Mapping[Any, Any], where: str) -> Iterable[Row]:
    """The rows of {name: column}."""
    columns = []
    for values in source.values():
        values = values.tolist() if hasattr(values, "tolist") else values
        if not isinstance(values, Sequence) or isinstance(values, str | bytes):
            splits = f"of splits ({listed(map(str, source))}); pass one of them"
            got = splits if isinstance(values, Iterable) else "whose values are not columns"
            if isinstance(values, str):
                got = "whose values are texts; pass a list of such rows"
            raise ArgumentTypeError(f"{where}: expected {{column: list}}, got a mapping {got}")
        columns.append(values)
    if len({len(values) for values in columns}) > 1:
        sizes = ", ".join(f"{name}: {len(v)}" for name, v in zip(source, columns, strict=True))
        raise DataError(f"{where}: expected columns of equal length, got {sizes}")
    return _named(source, zip(*columns, strict=True), where)


def _named(columns: Iterable[Any], rows: Iterable[Sequence[Any]], where: str) -> Iterable[Row]:
    names = distinct(columns, where)
    return (dict(zip(names, row, strict=True)) for row in rows)


def _tfds_rows(path: str) -> Iterator[Row]:
    find_shards([path], ReadOptions())  # Raises DataError if the data set is not on disk.
    import tensorflow_datasets as tfds

    _, name, *split = path.split(":", 2)  # A slice has colons, too: `train[:80%]`.
    builder = tfds.builder(name)
    dataset = builder.as_dataset(split=(split or ["train"])[0], shuffle_files=False)
    yield from _named_classes(tfds.as_numpy(dataset), builder.info.features)


def _named_classes(rows: Iterable[Row], features: Mapping[str, Any]) -> Iterator[Row]:
    """Rows of HF `datasets` or TFDS with names of classes; None for hidden labels (-1)."""
    classes = {
        name: getattr(feature, "feature", feature)
        for name, feature in features.items()
        if hasattr(getattr(feature, "feature", feature), "int2str")
    }

    def class_of(value: Any, feature: Any) -> Any:
        if isinstance(value, list):
            return [class_of(each, feature) for each in value]
        if not isinstance(value, int):
            return value
        return feature.int2str(value) if value >= 0 else None

    for row in rows:
        named = {name: plain(value) for name, value in row.items()}
        yield named | {n: class_of(named.get(n), feature) for n, feature in classes.items()}
