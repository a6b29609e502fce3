"""Reading of task data for the commands: training, evaluation and prediction files."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.registry import read_examples
from data_prep.tasks.table_files import read_rows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import MAX_LOST, Reading, check_lost
from official.xlnet.errors import DataError


def read_task(
    path: str, task: TaskConfig, max_lost: float = MAX_LOST
) -> tuple[list[Example], collections.Counter[str]]:
    """Reads labelled examples for training or evaluation.

    Sets `task.text_columns`, and what else follows from the files, if it is empty.

    Args:
      path: file, folder or `tfds:NAME:SPLIT`; or what `task.files` takes.
      task: the `task` section of the configuration.
      max_lost: largest share of a file's rows that may be unusable; these are left out, counted
        and warned of.

    Returns:
      examples: the examples.
      counts: numbers of skipped rows, by reason.

    Raises:
      ConfigError: a setting of columns is of no use.
      DataError: the data cannot be read, there are no examples, ids are not unique, or more than
        `max_lost` of the rows cannot be used.
    """
    counts: collections.Counter[str] = collections.Counter()
    examples: list[Example] = []
    parts: list[tuple[str, str, TaskConfig, list[Any]]] = []
    for name, part, settings in task.files(path):
        reading = Reading(part, settings, counts=counts)
        found = [_of(name, example) for example in read_examples(reading)]
        _check_ids(part, found)
        total = len(found) + reading.lost.total()
        check_lost(part, reading.lost, total, max_lost, first=reading.first_lost)
        parts.append((name, part, settings, found))
        examples += found
    if not examples:
        left_out = f" ({', '.join(f'{k} {v}' for k, v in counts.items())})" if counts else ""
        raise DataError(f"{path}: expected examples, got none{left_out}")
    task.take(parts)
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
    for name, part, settings in task.files(path):
        for example in read_examples(Reading(part, settings, strict=True, with_labels=False)):
            yield _of(name, example)


def columns_of(path: str, task: TaskConfig) -> tuple[str, ...]:
    """Returns the columns of a table to predict, in its first row; none for a folder or no row.

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
    return tuple(next(read_rows(Reading(path, task, with_labels=False)), {}))


def _check_ids(path: str, examples: list[Any]) -> None:
    """Raises `DataError` if two examples have the same id; a document has one for each query."""
    ids = collections.Counter(
        (getattr(example, "query_id", ""), example.id) for example in examples
    )
    (_, name), number = ids.most_common(1)[0] if ids else (("", ""), 0)
    if number > 1:
        raise DataError(
            f"{path}: expected ids of their own for all rows, got {name!r} {number} times; remove "
            "the repeated rows, or give the column of ids another name, so that rows are numbered"
        )


def _of(subtask: str, example: Any) -> Any:
    """The example, assigned to a subtask if there is one."""
    return dataclasses.replace(example, subtask=subtask) if subtask else example
