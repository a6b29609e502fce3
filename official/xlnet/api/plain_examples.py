"""Plain strings, tuples, arrays and tables as examples of a task."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

from data_prep.tasks.text_columns import text_columns_of
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.reading import Reading
from official.xlnet.errors import ArgumentTypeError, DataError
from official.xlnet.tasks.task import Task


def labelled_examples(rows: Iterable[Any], task: TaskConfig) -> list[Example]:
    """Converts labelled rows to examples.

    Args:
      rows: (text, label) or (text, text, …, label) for classification, multi_label and regression;
        (words, tags) for token_classification; or examples of the task's own class, for any task.
        The rows are tuples or lists in any iterable, or those of a pandas DataFrame. One with the
        column `task.label_column` is read by the names of its columns, as a file is.
      task: the task's configuration; `text_columns` is filled in if it is empty.

    Returns:
      The examples, with their row numbers as ids, starting from 1.

    Raises:
      TypeError: a row is neither a tuple nor an example.
      DataError: a row has no label, one that is missing (None, NaN or an empty name), or another
        number of texts than the first one.
    """
    kind = TASKS[task.name]
    examples = [_labelled(row, kind, number) for number, row in enumerate(_rows(rows, task), 1)]
    kind.name_columns(examples, task)
    return examples


def unlabelled_examples(inputs: Iterable[Any], task: TaskConfig) -> list[Example]:
    """Converts inputs to predict to examples.

    Args:
      inputs: texts, or tuples of texts; lists of words for token_classification; or examples of
        the task's own class, for any task. In any iterable, or a pandas DataFrame, which is read by
        the names of its columns if it has `task.text_columns`, and else as columns of texts.
      task: the task's configuration.

    Returns:
      The examples, with their row numbers as ids, starting from 1.

    Raises:
      TypeError: an input is neither a string, nor a tuple, nor an example.
      DataError: an input has another number of texts than the task.
    """
    kind = TASKS[task.name]
    rows = _rows(inputs, task, with_labels=False)
    examples = [
        row if isinstance(row, Example) else kind.unlabelled(row, number)
        for number, row in enumerate(rows, 1)
    ]
    kind.name_columns(examples, task)
    return examples


def _rows(rows: Any, task: TaskConfig, with_labels: bool = True) -> list[Any]:
    if hasattr(rows, "itertuples"):  # A DataFrame, which as an iterable gives its columns' names.
        table = rows.iloc[:, _places(list(rows.columns), task, with_labels)]
        return list(table.itertuples(index=False, name=None))
    if hasattr(rows, "tolist"):  # An array or a Series: plain values.
        rows = rows.tolist()
    if isinstance(rows, str | bytes | tuple | dict | os.PathLike) or not isinstance(rows, Iterable):
        kind = type(rows).__name__
        one = "; a tuple is one example with several texts" if isinstance(rows, tuple) else ""
        raise ArgumentTypeError(f"examples: expected a list, got {kind} {rows!r:.60}{one}")
    return list(rows)


def _places(names: list[Any], task: TaskConfig, with_labels: bool) -> list[int]:
    """Places of the texts in a table, and of the label at the end; all where no name tells them."""
    label = [task.label_column] if with_labels else []
    is_known = set(task.text_columns) <= set(names)
    has_names = set(label) <= set(names) if with_labels else bool(task.text_columns) and is_known
    if not task.has_text_columns or not has_names:
        return list(range(len(names)))
    texts = task.text_columns
    if with_labels:
        settings = task if is_known else dataclasses.replace(task, text_columns=())
        row = dict.fromkeys(map(str, names))
        texts = text_columns_of(Reading("examples", settings), row)
    return [list(map(str, names)).index(name) for name in (*texts, *label)]


def _labelled(row: Any, kind: type[Task], number: int) -> Example:
    if isinstance(row, Example):
        if not row.is_labelled:
            raise DataError(f"example {number}: expected a label, got {row!r:.60} without one")
        return row
    if not isinstance(row, tuple | list):
        raise ArgumentTypeError(
            f"example {number}: expected a tuple that ends in a label, got {row!r:.60}"
        )
    if len(row) < 2:
        raise DataError(f"example {number}: expected text and label, got {row!r:.60}")
    return kind.labelled(row, number)
