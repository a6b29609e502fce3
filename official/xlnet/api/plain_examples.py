"""Plain strings and tuples as examples of a task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example, Label, TaggedExample, TextExample
from official.xlnet.errors import DataError

# Tasks with the layout (text, …, label).
TEXT_TASKS = ("classification", "multi_label", "regression")
_MISSING = ("None", "nan", "NaT", "<NA>")  # What Python, NumPy and pandas call a missing value.


def labelled_examples(rows: Sequence[Any], task: TaskConfig) -> list[Example]:
    """Converts labelled rows to examples.

    Args:
      rows: (text, label) or (text, text, …, label) tuples for classification, multi_label and
        regression; (words, tags) for token_classification; or examples of `data.examples`, for
        any task.
      task: the task's configuration; `text_columns` is filled in if it is empty.

    Returns:
      The examples, with their row numbers as ids, starting from 1.

    Raises:
      TypeError: a row is neither a tuple nor an example.
      DataError: a row has no label or another number of texts than the first one.
    """
    examples = [_labelled(row, task, number) for number, row in enumerate(_rows(rows), 1)]
    _name_text_columns(examples, task)
    return examples


def unlabelled_examples(inputs: Sequence[Any], task: TaskConfig) -> list[Example]:
    """Converts inputs to predict to examples.

    Args:
      inputs: texts, or tuples of texts; lists of words for token_classification; or examples of
        `data.examples`, for any task.
      task: the task's configuration.

    Returns:
      The examples, with their row numbers as ids, starting from 1.

    Raises:
      TypeError: an input is neither a string, nor a tuple, nor an example.
      DataError: an input has another number of texts than the task.
    """
    examples = [_unlabelled(row, task, number) for number, row in enumerate(_rows(inputs), 1)]
    _name_text_columns(examples, task)
    return examples


def _rows(rows: Sequence[Any]) -> list[Any]:
    if isinstance(rows, str | bytes | tuple | dict):
        raise TypeError(f"examples: expected a list, got {type(rows).__name__} {rows!r:.60}")
    return list(rows)


def _labelled(row: Any, task: TaskConfig, number: int) -> Example:
    if isinstance(row, Example):
        return row
    if not isinstance(row, tuple):
        raise TypeError(f"example {number}: expected a tuple that ends in a label, got {row!r:.60}")
    if len(row) < 2:
        raise DataError(f"example {number}: expected text and label, got {row!r:.60}")
    *parts, label = row
    if task.name == "token_classification":
        return TaggedExample(str(number), tuple(parts[0]), tuple(label))
    _check_kind(task, number)
    return TextExample(str(number), _texts(parts, number), _label(label, task.name, number))


def _unlabelled(row: Any, task: TaskConfig, number: int) -> Example:
    if isinstance(row, Example):
        return row
    if task.name == "token_classification":
        words = row.split() if isinstance(row, str) else row
        return TaggedExample(str(number), _texts(words, number))
    _check_kind(task, number)
    return TextExample(str(number), _texts((row,) if isinstance(row, str) else row, number))


def _check_kind(task: TaskConfig, number: int) -> None:
    if task.name not in TEXT_TASKS:
        raise TypeError(
            f"example {number}: expected one of official.xlnet.data.examples, as tuples say too "
            f"little for {task.name}"
        )


def _texts(parts: Any, number: int) -> tuple[str, ...]:
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise TypeError(f"example {number}: expected strings, got {parts!r:.60}")
    return tuple(parts)


def _label(label: Any, kind: str, number: int) -> Label:
    if kind == "regression":
        try:
            value = float(label)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"example {number}: expected a number, got {label!r}")
        return value
    is_missing = not isinstance(label, str) and str(label) in _MISSING
    if is_missing or (kind == "classification" and not str(label).strip()):
        raise DataError(f"example {number}: expected a label, got {label!r}")
    if kind == "multi_label":
        if isinstance(label, str):
            raise DataError(f"example {number}: expected a list of classes, got {label!r}")
        return tuple(str(name) for name in label)
    return str(label)


def _name_text_columns(examples: list[Example], task: TaskConfig) -> None:
    """Names the texts of a new task `text1`, `text2`, …; checks their number otherwise."""
    for number, example in enumerate(examples, 1):
        if not isinstance(example, TextExample) or task.name not in TEXT_TASKS:
            continue
        found = len(example.texts)
        if not task.text_columns:
            names = [f"text{i}" for i in range(1, found + 1)]
            task.text_columns = tuple(names if found > 1 else ["text"])
        if found != len(task.text_columns):
            raise DataError(
                f"example {number}: expected {len(task.text_columns)} text(s) "
                f"({', '.join(task.text_columns)}), got {found}"
            )
