"""Reading of task data for the commands: training, evaluation and prediction files."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.datasets import DATASETS
from data_prep.tasks.registry import read_examples
from data_prep.tasks.table_files import read_rows
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.lost_rows import MAX_LOST, check_lost
from official.xlnet.data.reading import Reading
from official.xlnet.errors import ConfigError, DataError


def read_task(
    path: str, task: TaskConfig, max_lost: float = MAX_LOST
) -> tuple[list[Example], collections.Counter[str]]:
    """Reads labelled examples for training or evaluation.

    Sets `task.text_columns` and `task.subtasks` if they are empty.

    Args:
      path: file, folder or `tfds:NAME:SPLIT`; for `multitask`, `NAME=FILE,NAME=FILE`.
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
    subtasks: list[str] = []
    text_columns: list[str] = []  # Of the subtasks, as `subtask/column`.
    for name, part, settings in _parts(path, task):
        reading = Reading(part, settings, counts=counts)
        found = [_of(name, example) for example in read_examples(reading)]
        _check_ids(part, found)
        total = len(found) + reading.lost.total()
        check_lost(part, reading.lost, total, max_lost, first=reading.first_lost)
        if name and settings.name == "classification" and name not in DATASETS:
            _check_classes(part, name, found)
        subtasks.append(name)
        text_columns += [f"{name}/{column}" for column in settings.text_columns]
        examples += found
    if not examples:
        left_out = f" ({', '.join(f'{k} {v}' for k, v in counts.items())})" if counts else ""
        raise DataError(f"{path}: expected examples, got none{left_out}")
    if task.name == "multitask" and not task.subtasks:
        task.subtasks, task.text_columns = tuple(subtasks), tuple(text_columns)
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
    files: dict[str, str] = {}
    for item in path.split(","):
        name, equals, part = item.partition("=")
        if not equals or name in files:
            expected = "each NAME once" if equals else "NAME=FILE,NAME=FILE"
            raise DataError(f"multitask data: expected {expected}, got {item!r}")
        files[name] = part
    prefixes = tuple(f"{name}/" for name in (*task.subtasks, *files))
    of_all = [column for column in task.text_columns if not column.startswith(prefixes)]
    if not task.subtasks and files.keys() <= DATASETS.keys():
        for key, is_set in (
            ("text_columns", of_all),
            ("label_column", task.label_column != TaskConfig.label_column),
        ):
            if is_set:
                raise ConfigError(
                    f"task.{key}: expected no setting, as the columns of {', '.join(files)} are "
                    "known, or data of another name that it is for"
                )
    for name, part in files.items():
        yield name, part, _settings_of(name, task, tuple(of_all))


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


def _settings_of(name: str, task: TaskConfig, of_all: tuple[str, ...]) -> TaskConfig:
    """How the file of a data set of multi-task training is read."""
    own = task.columns_of(name)
    known = DATASETS.get(name)
    if known is None:
        kind = "regression" if name in task.regressions else "classification"
        return TaskConfig(
            name=kind,
            columns=task.columns,
            text_columns=own or of_all,
            label_column=task.label_column,
        )
    if known["name"] not in ("classification", "regression"):
        raise DataError(
            f"multitask data: expected classification or regression data, got {name} "
            f"({known['name']})"
        )
    return TaskConfig(**known | ({"text_columns": own} if own else {}))


def _check_classes(path: str, name: str, examples: list[Any]) -> None:
    """Raises `DataError` if all labels of a data set are numbers, not all of them whole."""
    try:
        numbers = [float(example.label) for example in examples]
    except ValueError:
        return
    other = next((number for number in numbers if not number.is_integer()), None)
    if other is not None:
        raise DataError(
            f"{path}: expected class names, got numbers such as {other:g}; "
            f"task.regressions=[{name}] predicts numbers"
        )


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
