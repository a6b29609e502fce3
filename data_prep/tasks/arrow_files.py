"""Rows of Parquet, Arrow and Feather, and of record batches in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from data_prep.tasks.features import class_names
from data_prep.tasks.row_formats import register_row_format
from data_prep.tasks.rows import Row, distinct
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_extra
from official.xlnet.files import file_system
from official.xlnet.files.compression import ending

_ARROW_FILE = b"ARROW1"  # First bytes of Arrow's files, unlike its streams.


@register_row_format(endings=(".parquet", ".arrow", ".feather", ".ipc"), is_always_table=True)
def arrow_file_rows(reading: Reading) -> Iterator[Row]:
    """Rows of a Parquet file, or of an Arrow file or stream."""
    require_extra("pyarrow", "parquet", reading.path)
    from pyarrow import ArrowException, ipc, parquet

    batches: Iterable[Any]
    try:
        with file_system.open(reading.path, "rb") as file:
            if ending(reading.path) == ".parquet":
                parts = parquet.ParquetFile(file)
                schema, batches = parts.schema_arrow, parts.iter_batches()
            elif file.read(len(_ARROW_FILE)) == _ARROW_FILE:
                parts = ipc.open_file(file)
                schema, batches = (
                    parts.schema,
                    map(parts.get_batch, range(parts.num_record_batches)),
                )
            else:  # As HF's `datasets` write them.
                file.seek(0)
                stream = ipc.open_stream(file)
                schema, batches = stream.schema, stream
            yield from arrow_rows(reading, schema, batches)
    except ArrowException as error:
        file_format = "Parquet" if ending(reading.path) == ".parquet" else "Arrow"
        message = f"{reading.path}: expected {file_format} that pyarrow reads, got {error}"
        raise DataError(message) from None


def arrow_rows(reading: Reading, schema: Any, batches: Iterable[Any]) -> Iterator[Row]:
    """Rows of Arrow; notes the index and the names of classes that the metadata has.

    Args:
      reading: its `unread` is set from pandas' metadata, its `classes` from Hugging Face's.
      schema: the Arrow schema.
      batches: record batches.
    """
    distinct(schema.names, reading.path)
    pandas, hf = (
        json.loads((schema.metadata or {}).get(key, "{}")) for key in (b"pandas", b"huggingface")
    )
    index = [name for name in pandas.get("index_columns", ()) if isinstance(name, str)]
    reading.unread |= dict.fromkeys(index, "pandas index")
    reading.classes |= class_names(hf.get("info", {}).get("features", {}))
    for batch in batches:
        yield from batch.to_pylist()
