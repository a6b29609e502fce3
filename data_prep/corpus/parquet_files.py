"""Parquet: a column of texts, read in groups of row groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data_prep.corpus.formats import RECORDS_PER_BATCH, TextReading, register_format
from official.xlnet.errors import DataError, require_data, require_extra
from official.xlnet.files import file_system


def _row_groups(path: str, part_size: int) -> list[tuple[str, int, int, int]]:
    """Groups of row groups."""
    require_extra("pyarrow", "parquet", path)
    import pyarrow
    import pyarrow.parquet as pq

    try:
        with file_system.open(path, "rb", buffering=0) as file:  # Reads its end.
            metadata = pq.read_metadata(file)
    except pyarrow.ArrowInvalid as error:
        raise DataError(f"{path}: expected a Parquet file: {error}") from None
    parts, start, num_bytes = [], 0, 0
    for group in range(metadata.num_row_groups):
        num_bytes += metadata.row_group(group).total_byte_size
        if num_bytes >= part_size or group == metadata.num_row_groups - 1:
            parts.append((path, start, group + 1, num_bytes))
            start, num_bytes = group + 1, 0
    return parts


@register_format("parquet", endings=(".parquet",), parts=_row_groups)
def parquet(source: Any, reading: TextReading) -> Iterator[Any]:
    """A row; the text is in the column `--text_field` (extra `parquet`)."""
    import pyarrow
    import pyarrow.parquet as pq

    shard, field = reading.shard, reading.options.text_field
    try:
        file = pq.ParquetFile(source)
        require_data(
            field in file.schema_arrow.names,
            shard.path,
            f"a column {field!r}",
            f"{', '.join(file.schema_arrow.names)}; --text_field names another column",
        )
        groups = list(range(shard.start, shard.stop))
        for batch in file.iter_batches(RECORDS_PER_BATCH, row_groups=groups, columns=[field]):
            yield from batch.column(0).to_pylist()
    except pyarrow.ArrowException as error:
        raise DataError(f"{shard.path}: expected a complete Parquet file: {error}") from None
