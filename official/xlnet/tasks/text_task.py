"""Base class of tasks on whole texts: windows of long texts, labels and their weights."""

from __future__ import annotations

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.task import Task


class TextTask(Task):
    """Base class of tasks with one label per text or group of texts."""

    @property
    def num_sequences(self) -> int:
        """Number of windows of a long text; 1 if long texts are truncated."""
        task = self.config.task
        return 1 if task.long_texts == "truncate" else task.max_windows

    def units(self, example):
        labels = {} if example.label is None else {"label": self.label(example)}
        if self.empty(example.texts):
            self.counts["empty"] += 1
        return [Unit(self.read(example.texts), labels)]

    def training_units(self, examples):
        units = []
        for example in examples:
            if self.empty(example.texts):
                self.counts["skipped_empty"] += 1
            else:
                units += self.units(example)
        if not units:
            raise DataError("training data: expected examples with text, got none")
        self.weigh(units)
        return units

    def label(self, example: TextExample) -> np.ndarray:
        """Converts the label of an example to the array that the head's loss takes."""
        raise NotImplementedError

    def weigh(self, units: list[Unit]) -> None:
        """Sets the loss weight of each unit; 1 by default."""
