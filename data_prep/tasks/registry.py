"""Selection of the reader for a task type and path."""

from __future__ import annotations

import os
from collections.abc import Iterator

from official.xlnet.configs.registry import FILE_READERS, FOLDER_READERS
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError


def read_examples(reading: Reading) -> Iterator[Example]:
    """Reads the examples of a file, folder or TFDS data set.

    Args:
      reading: the path and reading options.

    Returns:
      An iterator over the examples.

    Raises:
      ConfigError: no reader is registered for the task.
      DataError: the path does not exist, or its format does not match the task.
    """
    path, name = reading.path, reading.settings.name
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    FILE_READERS.load(name)  # Both kinds of reader are in one file.
    kinds = [(FILE_READERS, "a file"), (FOLDER_READERS, "a folder")]
    if os.path.isdir(path):
        kinds.reverse()
    (readers, got), (others, expected) = kinds
    if name in others and name not in readers:
        raise DataError(f"{path}: expected {expected} for {name}, got {got}")
    return (readers if name in readers else FILE_READERS)[name](reading)
