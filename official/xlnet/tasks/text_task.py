"""Base class of tasks on whole texts: plain rows, windows of long texts, labels and weights."""

from __future__ import annotations

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import require_data
from official.xlnet.tasks import long_texts
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.task import Task, in_groups
from official.xlnet.tokenization.graph.packing import needed_lengths
from official.xlnet.tokenization.graph.ragged import rows_of


class TextTask(Task):
    """Base class of tasks with one label per text or group of texts."""

    reads_long_texts = True

    def read(self, examples):
        return in_groups(self._read, examples, lambda example: len(example.texts))

    def _read(self, num_texts, examples):
        """Converts examples with equal numbers of texts."""
        task, names = self.config.task, self.config.task.text_columns
        expected = f"{len(names)} text(s) ({', '.join(names)})"
        require_data(len(names) in (0, num_texts), examples[0].id, expected, num_texts)
        self.count("empty", [self.empty(example.texts) for example in examples])
        texts_of_columns = zip(*(example.texts for example in examples), strict=True)
        columns = [self.tokens(texts) for texts in texts_of_columns]
        features, is_truncated = long_texts.read(columns, task, task.max_length)
        self.count("truncated", is_truncated)
        self.lengths.update(needed_lengths(columns).numpy().tolist())
        sequences = rows_of(features)
        num_sequences = len(sequences) // len(examples)  # Per example.
        units = []
        for n, example in enumerate(examples):
            labels = {} if example.label is None else {"label": self.label(example)}
            first = n * num_sequences
            units.append([Unit(sequences[first : first + num_sequences], labels)])
        return units

    def training_units(self, examples):
        usable = [example for example in examples if not self.empty(example.texts)]
        self.count("skipped_empty", np.ones(len(examples) - len(usable)))
        units = super().training_units(usable)
        require_data(bool(units), "training data", "examples with text", "none")
        self.weigh(units)
        return units

    def label(self, example: TextExample) -> np.ndarray:
        """Converts the label of an example to the array that the head's loss takes."""
        raise NotImplementedError

    def weigh(self, units: list[Unit]) -> None:
        """Sets the loss weight of each unit; 1 by default."""
