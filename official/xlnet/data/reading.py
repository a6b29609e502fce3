"""Registration of task data readers, and the arguments they are called with."""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

from official.xlnet.configs.registry import FILE_READERS, FOLDER_READERS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from official.xlnet.runtime.progress import Progress


@dataclasses.dataclass
class Reading:
    """A file or folder to read, and options for reading it.

    Attributes:
      path: path of the file or folder, or `tfds:NAME:SPLIT` for a TFDS data set on disk.
      settings: settings of the task.
      strict: whether an invalid row raises an error; otherwise it is counted and skipped.
      with_labels: whether labels are required.
      counts: numbers of skipped rows, by reason; updated by the reader.
      lost: the part of `counts` that could not be used: rejected rows.
      first_lost: what is wrong with the first of them.
    """

    path: str
    settings: TaskConfig
    strict: bool = False
    with_labels: bool = True
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    lost: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    first_lost: str = ""

    def say(self, message: str) -> None:
        """Says in one line how the file is read, where that is not given by its format."""
        Progress(sys.stderr).keep(f"{self.path}: {message}")

    def reject(self, reason: str, message: str) -> None:
        """Handles an invalid row.

        Args:
          reason: key of `counts` to increment.
          message: the error message in strict mode.

        Raises:
          DataError: in strict mode.
        """
        if self.strict:
            raise DataError(message)
        self.counts[reason] += 1
        self.lost[reason] += 1
        self.first_lost = self.first_lost or message


Reader = Callable[[Reading], Iterator[Any]]


def register_reader(name: str, *, folder: bool = False) -> Callable[[Reader], Reader]:
    """Decorator that registers a function as the reader of a task's data.

    The function takes a `Reading` and yields examples (`official.xlnet.data.examples`, or any
    object with an `id` that the task supports). It omits labels if `reading.with_labels` is false,
    and calls `reading.reject` for invalid rows.

    Args:
      name: the `task.name` whose data it reads.
      folder: whether it reads folders instead of files; a task can have one reader of each kind.

    Returns:
      The decorator.

    Raises:
      ConfigError: the task already has a reader of this kind.

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
