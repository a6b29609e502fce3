"""Reading of task data for the commands: training, evaluation and prediction files."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.datasets import DATASETS
from data_prep.tasks.registry import read_examples
from data_prep.tasks.tables import read_rows, text_columns_of
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.lost_rows import MAX_LOST, check_lost
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError

TEXT_KINDS = ("classification", "multi_label", "regression")


def read_task(
    path: str, task: TaskConfig, max_lost: float = MAX_LOST
) -> tuple[list[Example], collections.Counter[str]]:
    """Reads labelled examples for training or evaluation.

    Sets `task.text_columns` (and `task.subtasks`) if they are empty.

    Args:
      path: file, folder or `tfds:NAME:SPLIT`; for `multitask`, `NAME=FILE,NAME=FILE`.
      task: the `task` section of the configuration.
      max_lost: largest share of a file's rows that may be unusable; these are left out, counted
        and warned of.

    Returns:
      examples: the examples.
      counts: numbers of skipped rows, by reason.

    Raises:
      DataError: the data cannot be read, there are no examples, or more than `max_lost` of the
        rows cannot be used.
    """
    counts: collections.Counter[str] = collections.Counter()
    examples: list[Example] = []
    for name, part, settings in _parts(path, task):
        _find_text_columns(part, settings)
        if settings is not task:
            task.subtasks = tuple(dict.fromkeys((*task.subtasks, name)))
            columns = [f"{name}/{column}" for column in settings.text_columns]
            task.text_columns = tuple(dict.fromkeys((*task.text_columns, *columns)))
        reading = Reading(part, settings, counts=counts)
        found = [_of(name, example) for example in read_examples(reading)]
        total = len(found) + reading.lost.total()
        check_lost(part, reading.lost, total, max_lost, first=reading.first_lost)
        examples += found
    if not examples:
        left_out = f" ({', '.join(f'{k} {v}' for k, v in counts.items())})" if counts else ""
        raise DataError(f"{path}: expected examples, got none{left_out}")
    return examples, counts


def stream_task(path: str, task: TaskConfig) -> Iterator[Example]:
    """Reads unlabelled examples for prediction, one by one.

    Args:
      path: see `read_task`.
      task: see `read_task`.

    Yields:
      The examples.

    Raises:
      DataError: the data cannot be read, or a row is invalid.
    """
    for name, part, settings in _parts(path, task):
        for example in read_examples(Reading(part, settings, strict=True, with_labels=False)):
            yield _of(name, example)


def _parts(path: str, task: TaskConfig) -> Iterator[tuple[str, str, TaskConfig]]:
    """Yields (name of the subtask, path, settings) of each file."""
    if task.name != "multitask":
        yield "", path, task
        return
    for item in path.split(","):
        name, equals, part = item.partition("=")
        if not equals:
            raise DataError(f"multitask data: expected NAME=FILE,NAME=FILE, got {item!r}")
        # An unknown name is a classification table with a column `label`.
        known = DATASETS.get(name, {"name": "classification"})
        if known["name"] not in ("classification", "regression"):
            raise DataError(
                f"multitask data: expected classification or regression data, got {name} "
                f"({known['name']})"
            )
        if task.columns_of(name):
            known = {**known, "text_columns": task.columns_of(name)}
        yield name, part, TaskConfig(**known)


def columns_of(path: str, task: TaskConfig) -> tuple[str, ...]:
    """Returns the columns of a table, in its first row; none for a folder or an empty table.

    Args:
      path: see `read_task`.
      task: see `read_task`.

    Raises:
      DataError: the table cannot be read.
    """
    if os.path.isdir(path):
        return ()
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    return tuple(next(read_rows(Reading(path, task)), {}))


def _find_text_columns(path: str, task: TaskConfig) -> None:
    """Sets `task.text_columns` from the first row of a table, if it is empty."""
    if task.name not in TEXT_KINDS or task.text_columns:
        return
    row = dict.fromkeys(columns_of(path, task))
    if row:
        task.text_columns = text_columns_of(Reading(path, task), row)


def _of(subtask: str, example: Any) -> Any:
    """The example, assigned to a subtask if there is one."""
    return dataclasses.replace(example, subtask=subtask) if subtask else example
