"""Task data by name of a task or data set: training, evaluation and prediction files."""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.table import read_rows
from official.xlnet.configs.registry import DEFAULT_TASK, FILE_READERS, FOLDER_READERS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.lost_rows import MAX_LOST, check_lost
from official.xlnet.data.reading import Reading
from official.xlnet.errors import DataError, require_data


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
    if reading.rows is not None:
        # The reader of an extension, which is not in the table of modules, reads files alone.
        is_ours = FILE_READERS.is_known(name) and name in FILE_READERS.modules
        return FILE_READERS[name if is_ours else DEFAULT_TASK](reading)
    if not path.startswith("tfds:") and not os.path.exists(path):
        raise DataError(f"no data at {path!r}: expected a file or a folder")
    FILE_READERS.load(name)  # It may also register a reader of folders.
    reads_files, reads_folders = FILE_READERS.is_known(name), FOLDER_READERS.is_known(name)
    if os.path.isdir(path):
        if reads_folders:
            return FOLDER_READERS[name](reading)
        require_data(not reads_files, path, f"a file for {name}", "a folder")
    folder_name = os.path.basename(os.path.dirname(os.path.abspath(path)))
    if FOLDER_READERS.is_known(f"{name}/{folder_name}"):
        return FOLDER_READERS[f"{name}/{folder_name}"](reading)
    require_data(reads_files or not reads_folders, path, f"a folder for {name}", "a file")
    return FILE_READERS[name](reading)


def read_task(
    source: Any, task: TaskConfig, max_lost: float = MAX_LOST, name: str = "examples"
) -> tuple[list[Example], collections.Counter[str]]:
    """Reads labelled examples for training or evaluation.

    Sets `task.text_columns`, and what else follows from the data, if it is empty.

    Args:
      source: file, folder or `tfds:NAME:SPLIT`, or what `task.parts_of_source` takes; or rows of
        Python: a table with named columns (a frame of pandas or Polars, an Arrow table, a data set
        of HF or TFDS, a mapping of columns, a list of mappings), which is read as its file is; a
        list of tuples, `(text, label)`, `(text, text, label)` or `(words, tags)`; or examples of
        the task's own class. For a task of several data sets,
        {name: any of these}.
      task: the `task` section of the configuration.
      max_lost: largest share of the rows that may be unusable; these are left out, counted and
        warned of.
      name: what messages call rows of Python.

    Returns:
      examples: the examples.
      counts: numbers of skipped rows, by reason.

    Raises:
      ConfigError: a setting of columns is of no use.
      DataError: the data cannot be read, there are no examples, ids are not unique, or more than
        `max_lost` of the rows cannot be used.
      TypeError: `source` is neither a table nor a list.
    """
    counts: collections.Counter[str] = collections.Counter()
    examples: list[Example] = []
    parts: list[tuple[str, str, TaskConfig, list[Any]]] = []
    for subtask, reading in _readings(source, task, name):
        reading.counts = counts
        part = [_of(subtask, example) for example in read_examples(reading)]
        _check_ids(reading.path, part)
        num_rows = len(part) + reading.lost.total()
        check_lost(reading.path, reading.lost, num_rows, max_lost, first=reading.first_lost)
        parts.append((subtask, reading.path, reading.settings, part))
        examples += part
    if not examples:
        where = source if isinstance(source, str) else name
        reasons = [f"{reason} {count}" for reason, count in counts.items()]
        left_out = f" ({', '.join(reasons)})" if reasons else ""
        raise DataError(f"{where}: expected examples, got none{left_out}")
    task.complete_from_files(parts)
    return examples, counts


def stream_task(
    source: Any, task: TaskConfig, name: str = "inputs", num_before: int = 0
) -> Iterator[Example]:
    """Reads unlabelled examples for prediction, one by one.

    Args:
      source: see `read_task`; a list has a text or list of texts in place of each tuple.
      task: see `read_task`.
      name: see `read_task`.
      num_before: number of rows that were read before, by which rows without an id are numbered.

    Yields:
      The examples.

    Raises:
      DataError: the data cannot be read, or a row is invalid.
      TypeError: `source` is neither a table nor a list.
    """
    for subtask, reading in _readings(source, task, name):
        reading.strict, reading.with_labels = True, False
        reading.num_before = num_before
        for example in read_examples(reading):
            yield _of(subtask, example)


def _readings(source: Any, task: TaskConfig, name: str) -> Iterator[tuple[str, Reading]]:
    for subtask, part, settings in task.parts_of_source(source):
        if isinstance(part, str):
            rows = None
            if os.path.isdir(part):
                from data_prep.tasks.python_tables import saved_by_datasets

                rows = saved_by_datasets(part)
            yield subtask, Reading(part, settings, rows=rows)
        else:
            yield subtask, Reading(f"{name} {subtask}".rstrip(), settings, rows=part)


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
    (_, name), num_rows = ids.most_common(1)[0] if ids else (("", ""), 0)
    require_data(
        num_rows <= 1,
        path,
        "ids of their own for all rows",
        f"{name!r} {num_rows} times; remove the repeated rows, or give the column of ids another "
        "name, so that rows are numbered",
    )


def _of(subtask: str, example: Any) -> Any:
    """The example, assigned to a subtask if there is one."""
    return dataclasses.replace(example, subtask=subtask) if subtask else example
