"""Readers of task data: what each is given, and which one reads the data of which task."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from official.xlnet.configs.registry import Registry
from official.xlnet.errors import DataError


class Settings(Protocol):
    """Those of `TaskConfig` that say how a file is read."""

    name: str
    columns: tuple[str, ...]
    text_columns: tuple[str, ...]
    label_column: str
    subtasks: tuple[str, ...]


@dataclasses.dataclass
class Reading:
    """One file or folder that is read.

    Attributes:
      path: where it is; `tfds:NAME:SPLIT` for tensorflow-datasets on disk.
      settings: of the task.
      strict: whether a row that cannot be used is an error; else it is counted and left out.
      with_labels: whether a label is required.
      counts: gets numbers of rows that were left out, by reason.
    """

    path: str
    settings: Settings
    strict: bool = False
    with_labels: bool = True
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def reject(self, reason: str, sentence: str) -> None:
        """Counts a row that cannot be used, or raises `DataError`."""
        if self.strict:
            raise DataError(sentence)
        self.counts[reason] += 1


Reader = Callable[[Reading], Iterator[Any]]
FILE_READERS: Registry[Reader] = Registry("task.name")
FOLDER_READERS: Registry[Reader] = Registry("task.name")


def register_reader(name: str, *, folder: bool = False) -> Callable[[Reader], Reader]:
    """Decorator that makes a function the reader of the data of a task.

    The function takes a `Reading` and yields examples (`official.xlnet.data.examples`, or any
    object with an `id` that the task understands). It leaves labels out where
    `reading.with_labels` is false, and calls `reading.reject` for a row that cannot be used.

    Args:
      name: the `task.name` whose data it reads.
      folder: whether it reads folders instead of files; a task may have a reader of each.

    Raises:
      ConfigError: the task has such a reader already.

    Example:
      >>> @register_reader("stars")
      ... def read_stars(reading):
      ...     with open(reading.path, encoding="utf-8") as file:
      ...         for number, line in enumerate(file, start=1):
      ...             stars, _, text = line.strip().partition(" ")
      ...             label = stars if reading.with_labels else None
      ...             yield TextExample(str(number), (text,), label)
    """
    return (FOLDER_READERS if folder else FILE_READERS).register(name)
