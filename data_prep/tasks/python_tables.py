"""Tables of Python: frames, columns, lists, data sets of HF; and of TFDS and HF on a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from data_prep.tasks.features import class_names
from data_prep.tasks.plain_values import field_names, is_column, plain
from data_prep.tasks.rows import Row, distinct, listed
from official.xlnet.data.reading import Reading
from official.xlnet.errors import (
    ArgumentTypeError,
    ConfigError,
    DataError,
    require_data,
    require_extra,
)

_FRAMES = ("__arrow_c_stream__", "__dataframe__")
_ADVICE = {"tuple": "; a tuple is one example with several texts", "set": "; a set has no order"}


def python_rows(reading: Reading) -> Iterable[Any]:
    """Returns the rows of a table of Python: with names, or values if the columns have none."""
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
    if is_column(source):
        return source if field_names(source) else plain(source)
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


def tfds_rows(reading: Reading) -> Iterable[Row]:
    """Returns the rows of a TFDS data set on disk."""
    from data_prep.corpus.tfds_splits import example_ranges

    example_ranges(reading.path, part_size=0)  # Raises DataError if the data set is not on disk.
    import tensorflow_datasets as tfds

    _, name, *split = reading.path.split(":", 2)  # A slice has colons, too: `train[:80%]`.
    builder = tfds.builder(name)
    reading.classes = class_names(builder.info.features)
    dataset = builder.as_dataset(split=(split or ["train"])[0], shuffle_files=False)
    return tfds.as_numpy(dataset)


def saved_by_datasets(folder: str) -> Any:
    """Returns the data set, or {split: data set}, of a folder of HF's `save_to_disk`.

    Args:
      folder: any folder; None is returned for another one.

    Raises:
      ConfigError: the package datasets is not installed.
    """
    if not {"dataset_info.json", "dataset_dict.json"} & {*os.listdir(folder)}:
        return None
    try:
        from datasets import load_from_disk
    except ImportError:
        raise ConfigError(f"{folder}: expected the package datasets, which wrote it") from None
    return load_from_disk(folder)
