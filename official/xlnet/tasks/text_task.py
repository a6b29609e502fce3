"""Base class of tasks on whole texts: plain rows, windows of long texts, labels and weights."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from official.xlnet.data.examples import Label, TextExample
from official.xlnet.errors import ArgumentTypeError, DataError
from official.xlnet.tasks import long_texts
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.task import Task, in_groups
from official.xlnet.tokenization.graph.ragged import rows_of


def texts_of(parts: Any, number: int) -> tuple[str, ...]:
    """Returns the texts of a row.

    Args:
      parts: a list, tuple or array of strings.
      number: number of the row, for the error message.

    Raises:
      TypeError: it is not.
    """
    parts = parts.tolist() if isinstance(parts, np.ndarray) else parts
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ArgumentTypeError(f"example {number}: expected strings, got {parts!r:.60}")
    return tuple(parts)


def class_name(label: Any, number: int) -> str:
    """Returns the name of a class, which may be a number.

    Args:
      label: the label.
      number: number of the row, for the error message.

    Raises:
      DataError: it is missing: None, NaN or an empty name.
    """
    is_name = isinstance(label, str | np.generic | numbers.Real) and label == label  # NaN is not.
    if not is_name or not str(label).strip():
        raise DataError(
            f"example {number}: expected a label, the name of a class, got {label!r:.60}"
        )
    return str(label)


class TextTask(Task):
    """Base class of tasks with one label per text or group of texts."""

    @classmethod
    def labelled(cls, row, number):
        *parts, label = row
        return TextExample(str(number), texts_of(parts, number), cls.plain_label(label, number))

    @classmethod
    def unlabelled(cls, row, number):
        return TextExample(str(number), texts_of((row,) if isinstance(row, str) else row, number))

    @classmethod
    def plain_label(cls, label: Any, number: int) -> Label:
        """Converts a label of Python to that of an example: here, to the name of a class.

        Args:
          label: the label.
          number: number of the row, for the error message.

        Raises:
          DataError: the label is missing or of another kind.
        """
        return class_name(label, number)

    @classmethod
    def name_columns(cls, examples, task):
        for number, example in enumerate(examples, 1):
            if not isinstance(example, TextExample):
                continue
            found = len(example.texts)
            if not task.text_columns:
                names = tuple(f"text{i}" for i in range(1, found + 1))
                task.text_columns = names if found > 1 else ("text",)
            if found != len(task.text_columns):
                raise DataError(
                    f"example {number}: expected {len(task.text_columns)} text(s) "
                    f"({', '.join(task.text_columns)}), got {found}"
                )

    def read(self, examples):
        return in_groups(self._read, examples, lambda example: len(example.texts))

    def _read(self, _, examples):
        """Converts examples with equal numbers of texts."""
        task = self.config.task
        labels = [{} if e.label is None else {"label": self.label(e)} for e in examples]
        self.count("empty", [self.empty(e.texts) for e in examples])
        columns = [self.tokens(column) for column in zip(*(e.texts for e in examples), strict=True)]
        features, is_truncated = long_texts.read(columns, task, task.max_length)
        self.count("truncated", is_truncated)
        rows = rows_of(features)
        number = len(rows) // len(examples)
        return [[Unit(rows[n * number : (n + 1) * number], own)] for n, own in enumerate(labels)]

    def training_units(self, examples):
        usable = [example for example in examples if not self.empty(example.texts)]
        self.count("skipped_empty", np.ones(len(examples) - len(usable)))
        units = super().training_units(usable)
        if not units:
            raise DataError("training data: expected examples with text, got none")
        self.weigh(units)
        return units

    def label(self, example: TextExample) -> np.ndarray:
        """Converts the label of an example to the array that the head's loss takes."""
        raise NotImplementedError

    def weigh(self, units: list[Unit]) -> None:
        """Sets the loss weight of each unit; 1 by default."""
