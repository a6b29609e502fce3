"""Splits of TFDS data sets on disk, read in ranges of examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data_prep.corpus.formats import (
    RECORDS_PER_BATCH,
    TFDS_PREFIX,
    TextReading,
    register_format,
)
from official.xlnet.errors import DataError, require_data, require_extra

_EXAMPLES_PER_SHARD = 20_000


def example_ranges(path: str, part_size: int) -> list[tuple[str, int, int, int]]:
    """Divides a split, or a slice of one, into ranges of examples; see `TextFormat.parts`.

    Raises:
      DataError: the data set or the split is not on disk.
    """
    require_extra("tensorflow_datasets", "tfds", TFDS_PREFIX)
    import tensorflow_datasets as tfds

    dataset, _, split = path.removeprefix(TFDS_PREFIX).partition(":")
    split = split or "train"
    splits: Any = {}
    try:
        splits = tfds.builder(dataset).info.splits
        slices = tfds.core.ReadInstruction.from_spec(split).to_absolute(splits)
    except (ValueError, AssertionError, NotImplementedError) as error:
        raise DataError(
            f"{path}: expected a split of {dataset} that is on disk, one of "
            f"{', '.join(splits) or '(none: download it with tfds build)'}, or a slice of one, "
            f"such as train[:80%]; got {split!r} ({str(error).partition(chr(10))[0]})"
        ) from None
    parts = []
    for part in slices:
        info = splits[part.splitname]
        per_example = info.num_bytes // max(1, info.num_examples)
        end = info.num_examples if part.to is None else part.to
        for start in range(part.from_ or 0, end, _EXAMPLES_PER_SHARD):
            stop = min(start + _EXAMPLES_PER_SHARD, end)
            name = f"{dataset}:{part.splitname}"
            parts.append((name, start, stop, per_example * (stop - start)))
    return parts


@register_format("tfds", parts=example_ranges, is_file=False)
def tensorflow_datasets(source: None, reading: TextReading) -> Iterator[bytes]:
    """An example of a TFDS data set on disk, of a split or a slice such as `train[:80%]`.

    The text is in the feature `--text_field`.
    """
    import tensorflow_datasets as tfds

    shard, field = reading.shard, reading.options.text_field
    name, split = shard.path.rsplit(":", 1)
    builder = tfds.builder(name)
    require_data(
        field in builder.info.features,
        f"tfds:{name}",
        f"a feature {field!r}",
        f"{', '.join(builder.info.features)}; --text_field names another feature",
    )
    split = f"{split}[{shard.start}:{shard.stop}]"
    dataset = builder.as_dataset(split=split, shuffle_files=False)
    for batch in tfds.as_numpy(dataset.batch(RECORDS_PER_BATCH)):
        yield from batch[field].tolist()
