"""Which reader reads what."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from official.xlnet.examples import Example
from official.xlnet.features import DataError


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


def read_examples(reading: Reading) -> Iterator[Example]:
    """Yields the examples of a file or a folder.

    Raises:
      DataError: nothing is there, or it is not what the task reads.
    """
    from data_prep.tasks import choices, folders, ranking, squad, tables, tagged

    path, kind = reading.path, reading.settings.name
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    is_folder = os.path.isdir(path)
    readers: dict[str, Callable[..., Iterator[Any]]] = {
        "classification": folders.read_folder if is_folder else tables.read_texts,
        "multi_label": tables.read_texts,
        "regression": tables.read_texts,
        "multiple_choice": choices.read_race if is_folder else choices.read_choices,
        "question_answering": squad.read_squad,
        "token_classification": tagged.read_conll,
        "ranking": ranking.read_trec if is_folder else ranking.read_ranking,
    }
    if is_folder and kind not in ("classification", "multiple_choice", "ranking"):
        raise DataError(f"{path}: expected a file for {kind}, got a folder")
    return readers[kind](reading)
