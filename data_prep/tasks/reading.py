"""What a reader of task data is given: a path, the task's settings, and where to count rejects."""

from __future__ import annotations

import collections
import dataclasses
from typing import Protocol

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
