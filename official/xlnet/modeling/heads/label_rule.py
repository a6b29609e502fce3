"""Labels that a loss takes: their range and their number in a row.

A label that is not a class is a NaN on a GPU or with XLA, or silently trained for where the loss
takes other numbers, too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import DataError


@dataclasses.dataclass(frozen=True)
class LabelRule:
    """Which numbers a loss takes as labels.

    Attributes:
      reader: the loss or task that takes them, for messages.
      least: the least label.
      most: the greatest label; infinity where the batch says how many classes there are.
      are_classes: whether labels are numbers of classes, which are whole.
      num_in_row: number of labels of a row.
      ignored: a further label, of rows that the loss ignores.
      names: names of the classes, if they are known.
    """

    reader: str
    least: float = -math.inf
    most: float = math.inf
    are_classes: bool = False
    num_in_row: int = 1
    ignored: int | None = None
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What labels have to be, for messages."""
        if self.are_classes:
            end = f" to {self.most:g}" if math.isfinite(self.most) else ""
            words = f"the number of a class in each row, from 0{end}"
        else:
            words = "a number" if self.num_in_row == 1 else f"{self.num_in_row} numbers"
            is_bounded = math.isfinite(self.least)
            bounds = f", from {self.least:g} to {self.most:g}" if is_bounded else ""
            words = f"{words} in each row{bounds}"
        return f"{words}, as {self.reader} takes them"

    def check(self, labels: Any, weights: Any = None) -> None:
        """Raises `DataError` for labels that the loss does not take.

        Args:
          labels: an array or tensor [rows] or [rows, numbers]. In a graph it gets an assertion.
          weights: weights of the rows. Any number is a label of a row of weight 0, except where
            labels are classes: their loss reads it before it is weighted.
        """
        self.check_form(labels)
        if not hasattr(labels, "dtype") or tf.as_dtype(labels.dtype).is_bool:
            return
        values = tf.get_static_value(labels) if tf.is_tensor(labels) else labels
        if values is None:
            numbers = tf.cast(labels, tf.float64)
            are_wrong = self._are_wrong(numbers) & self._are_read(numbers, weights)
            wrong = tf.boolean_mask(numbers, are_wrong)
            message = [f"labels: expected {self.expected}, got", wrong[:3]]
            tf.debugging.Assert(tf.equal(tf.size(wrong), 0), message)
            return
        values = np.asarray(values, np.float64)
        with np.errstate(invalid="ignore"):
            are_wrong = self._are_wrong(values) & self._are_read(values, weights)
        if are_wrong.any():
            row, *_ = np.argwhere(are_wrong)[0]
            value = values[are_wrong].reshape(-1)[0]
            self._refuse(f"{value:g} in row {row + 1}{_advice(value)}")

    def check_form(self, labels: Any) -> None:
        """Raises `DataError` if the type or the shape of labels is wrong.

        Args:
          labels: an array, a tensor or its spec.
        """
        dtype, shape = getattr(labels, "dtype", None), getattr(labels, "shape", None)
        if isinstance(labels, np.ndarray) and labels.dtype.kind not in "biufUSO":
            self._refuse(f"values of the type {dtype}")
        if dtype is not None and tf.as_dtype(dtype) == tf.string:
            text = ""
            if tf.is_tensor(labels) and tf.get_static_value(labels) is not None and len(labels):
                first = np.asarray(tf.get_static_value(labels)).reshape(-1)[0]
                text = f" such as {first.decode(errors='replace')!r:.50}"
            names = list(self.names) or "names"
            advice = f": [{names}.index(label) for label in labels]" if self.are_classes else ""
            self._refuse(f"texts{text}{advice}")
        sizes = None if shape is None else tf.TensorShape(shape)
        if sizes is None or sizes.rank is None or sizes.rank > 2:
            return
        num_in_row = 1 if sizes.rank < 2 else sizes[1]
        if num_in_row not in (None, self.num_in_row):
            self._refuse(f"the shape {tuple(sizes)}{self._other_loss(num_in_row)}")

    def _other_loss(self, num_in_row: int) -> str:
        """Which loss takes labels of another number in a row, for a message."""
        if self.reader == "SparseCategoricalCrossentropy" and num_in_row == self.most + 1:
            return ": CategoricalCrossentropy takes one-hot labels"
        if self.reader == "CategoricalCrossentropy" and num_in_row == 1:
            return ": SparseCategoricalCrossentropy takes the number of a class"
        return ""

    def _are_wrong(self, labels: Any) -> Any:
        """Where labels, float64, are not those of the loss; NaN is in no range."""
        are_right = (labels >= self.least) & (labels <= self.most) & (abs(labels) < math.inf)
        if self.are_classes:
            are_right &= labels == labels // 1
        if self.ignored is not None:
            are_right |= labels == self.ignored
        return ~are_right

    def _are_read(self, labels: Any, weights: Any) -> Any:
        """Where labels, float64, change the loss; NaN does with any weight."""
        # Worker processes of a `PyDataset` have no TensorFlow.
        library: Any = np if isinstance(labels, np.ndarray) else tf
        everywhere = library.ones_like(labels, bool)
        ranks = [tf.TensorShape(getattr(x, "shape", None)).rank for x in (weights, labels)]
        if self.are_classes or ranks not in ([1, 1], [1, 2]):
            return everywhere
        column = library.reshape(weights, [-1] + [1] * (ranks[1] - 1))
        is_number = (abs(labels) < math.inf) & (labels == labels)
        return everywhere & ~(is_number & (column == 0))

    def _refuse(self, got: str) -> None:
        raise DataError(f"labels: expected {self.expected}, got {got}")


def rule_of_classes(task: Any) -> LabelRule:
    """The rule of a loss that takes the number of one of the classes `task.labels`.

    Args:
      task: the section `task` of a configuration.
    """
    return LabelRule(task.name, 0, len(task.labels) - 1, True, names=tuple(task.labels))


def _advice(value: float) -> str:
    is_missing = value == -1 or math.isnan(value)
    return ", which often stands for a missing label: leave out such rows" if is_missing else ""
