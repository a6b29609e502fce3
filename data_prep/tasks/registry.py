"""Task types and data sets by name: their settings, and the readers of their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from official.xlnet.configs.registry import DATASETS, FILE_READERS, FOLDER_READERS, TASKS
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, did_you_mean, require_data


def task_settings(name: str) -> dict[str, Any]:
    """Returns the task settings of a data set or task type.

    Args:
      name: name of a data set or task type.

    Returns:
      Keys of the section `task` by name.

    Raises:
      DataError: the name is unknown.
    """
    if name in DATASETS:
        return dict(DATASETS[name])
    kinds = TASKS.names()
    if name in kinds:
        return {"name": name}
    known = [*kinds, *DATASETS]
    raise DataError(f"task {name!r}: expected one of {', '.join(known)}{did_you_mean(name, known)}")


def read_examples(reading: Reading) -> Iterator[Example]:
    """Reads the examples of a file, folder, TFDS data set, or of rows of Python.

    Args:
      reading: the source and reading options.

    Returns:
      An iterator over the examples.

    Raises:
      ConfigError: no reader is registered for the task.
      DataError: the path does not exist, or its format does not match the task.
    """
    path, name = reading.path, reading.settings.name
    if reading.rows is not None:  # A reader of an extension reads files alone.
        return FILE_READERS[name if name in FILE_READERS.modules else "classification"](reading)
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    FILE_READERS.load(name)  # Both kinds of reader are in one file.
    kinds = [(FILE_READERS, "a file"), (FOLDER_READERS, "a folder")]
    if os.path.isdir(path):
        kinds.reverse()
    (readers, got), (others, expected) = kinds
    require_data(name not in others or name in readers, path, f"{expected} for {name}", got)
    return (readers if name in readers else FILE_READERS)[name](reading)
