"""Readers of task data: a source of rows, and the registry of functions that read one."""

from __future__ import annotations

import collections
import dataclasses
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from official.xlnet.configs.registry import FILE_READERS, FOLDER_READERS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError
from official.xlnet.runtime.progress import Progress


@dataclasses.dataclass
class Reading:
    """A source of rows to read, and options for reading it.

    Attributes:
      path: path of the file or folder, or `tfds:NAME:SPLIT` for a TFDS data set on disk; with
        `rows`, what messages call these.
      settings: settings of the task.
      strict: whether an invalid row raises an error; otherwise it is counted and skipped.
      with_labels: whether labels are required.
      counts: numbers of skipped rows, by reason; updated by the reader.
      lost: the part of `counts` that could not be used: rejected rows.
      first_lost: error message of the first of them.
      rows: rows of Python to read in place of a file: a frame, columns, or a list.
      classes: names of the classes of columns of integers, as the source says.
      unread: columns that the source says are not data, each with the reason.
      num_before: number of rows that were read before, for ids and messages.
    """

    path: str
    settings: TaskConfig
    strict: bool = False
    with_labels: bool = True
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    lost: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    first_lost: str = ""
    rows: Any = None
    classes: dict[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    unread: dict[str, str] = dataclasses.field(default_factory=dict)
    num_before: int = 0

    def say(self, message: str) -> None:
        """Says in one line how the file is read, where that is not given by its format."""
        if self.num_before:  # It has been said.
            return
        Progress(sys.stderr).log_line(f"{self.path}: {message}")

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
        Under a name `TASK/FOLDER`, it reads the files in folders of that name.

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
