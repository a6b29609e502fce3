"""Plain strings, tuples, arrays and tables as examples of a task."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example, Label, QuestionExample, TaggedExample, TextExample
from official.xlnet.errors import ArgumentTypeError, DataError

# Tasks with the layout (text, …, label).
TEXT_TASKS = ("classification", "multi_label", "regression")


def labelled_examples(rows: Iterable[Any], task: TaskConfig) -> list[Example]:
    """Converts labelled rows to examples.

    Args:
      rows: (text, label) or (text, text, …, label) for classification, multi_label and regression;
        (words, tags) for token_classification; or examples of `data.examples`, for any task. The
        rows are tuples or lists in any iterable, or those of a pandas DataFrame.
      task: the task's configuration; `text_columns` is filled in if it is empty.

    Returns:
      The examples, with their row numbers as ids, starting from 1.

    Raises:
      TypeError: a row is neither a tuple nor an example.
      DataError: a row has no label, one that is missing (None, NaN or an empty name), or another
        number of texts than the first one.
    """
    examples = [_labelled(row, task, number) for number, row in enumerate(_rows(rows), 1)]
    _name_text_columns(examples, task)
    return examples


def unlabelled_examples(inputs: Iterable[Any], task: TaskConfig) -> list[Example]:
    """Converts inputs to predict to examples.

    Args:
      inputs: texts, or tuples of texts; lists of words for token_classification; or examples of
        `data.examples`, for any task. In any iterable, or a pandas DataFrame of text columns.
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


def _rows(rows: Any) -> list[Any]:
    if hasattr(rows, "itertuples"):  # A DataFrame, which as an iterable gives its columns' names.
        return list(rows.itertuples(index=False, name=None))
    if hasattr(rows, "tolist"):  # An array or a Series: plain values.
        rows = rows.tolist()
    if isinstance(rows, str | bytes | tuple | dict | os.PathLike) or not isinstance(rows, Iterable):
        kind = type(rows).__name__
        raise ArgumentTypeError(f"examples: expected a list, got {kind} {rows!r:.60}")
    return list(rows)


def _labelled(row: Any, task: TaskConfig, number: int) -> Example:
    if isinstance(row, Example):
        _check_labelled(row, number)
        return row
    if not isinstance(row, tuple | list):
        raise ArgumentTypeError(
            f"example {number}: expected a tuple that ends in a label, got {row!r:.60}"
        )
    if len(row) < 2:
        raise DataError(f"example {number}: expected text and label, got {row!r:.60}")
    *parts, label = row
    if task.name == "token_classification":
        return _tagged(parts, label, number)
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


def _tagged(parts: list[Any], tags: Any, number: int) -> TaggedExample:
    words = _texts(parts[0], number)
    if len(parts) > 1 or isinstance(tags, str) or not isinstance(tags, Iterable):
        raise ArgumentTypeError(
            f"example {number}: expected (words, tags), two lists, got {(*parts, tags)!r:.60}"
        )
    tags = tuple(_class_name(tag, number) for tag in tags)
    if len(tags) != len(words):
        raise DataError(
            f"example {number}: expected a tag for each of {len(words)} words, got {len(tags)}"
        )
    return TaggedExample(str(number), words, tags)


def _check_labelled(example: Example, number: int) -> None:
    if isinstance(example, QuestionExample):
        missing = not example.has_label
    else:
        names = ("label", "tags", "relevance")
        missing = all(getattr(example, name, None) is None for name in names)
    if missing:
        raise DataError(f"example {number}: expected a label, got {example!r:.60} without one")


def _check_kind(task: TaskConfig, number: int) -> None:
    if task.name not in TEXT_TASKS:
        raise ArgumentTypeError(
            f"example {number}: expected one of official.xlnet.data.examples, as tuples say too "
            f"little for {task.name}"
        )


def _texts(parts: Any, number: int) -> tuple[str, ...]:
    parts = parts.tolist() if isinstance(parts, np.ndarray) else parts
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ArgumentTypeError(f"example {number}: expected strings, got {parts!r:.60}")
    return tuple(parts)


def _label(label: Any, kind: str, number: int) -> Label:
    if kind == "regression":
        try:
            value = float(label)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise DataError(f"example {number}: expected a number, got {label!r:.60}")
        return value
    if kind == "multi_label":
        if isinstance(label, str | bytes | dict) or not isinstance(label, Iterable):
            raise DataError(f"example {number}: expected a list of classes, got {label!r:.60}")
        return tuple(_class_name(name, number) for name in label)
    return _class_name(label, number)


def _class_name(label: Any, number: int) -> str:
    """The name of a class, which may be a number; raises `DataError` where it is missing."""
    is_name = isinstance(label, str | np.generic | numbers.Real) and label == label  # NaN is not.
    if not is_name or not str(label).strip():
        raise DataError(
            f"example {number}: expected a label, the name of a class, got {label!r:.60}"
        )
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
