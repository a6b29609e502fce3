"""What a task is: from examples to units, from outputs to predictions, figures and a picture."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import Registry
from official.xlnet.data.examples import Example
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tokenization.packing import pack_texts, truncated
from official.xlnet.tokenization.tokenizer import Tokenizer

Prediction = dict[str, Any]


class Task:
    """One kind of task. Subclasses say what is in the comments of the methods.

    Args:
      config: the configuration; `config.task` is complete, labels included.
      tokenizer: the model's.

    Attributes:
      metric: the figure by which checkpoints are compared; larger is better.
      counts: what happened to examples, e.g. `truncated`.
    """

    metric = "accuracy"

    def __init__(self, config: XLNetConfig, tokenizer: Tokenizer):
        self.config = config
        self.tokenizer = tokenizer
        self.counts: collections.Counter[str] = collections.Counter()

    @classmethod
    def complete(cls, config: XLNetConfig, examples: Sequence[Example]) -> None:
        """Fills in of `config.task` what follows from the training examples.

        Raises:
          DataError: nothing can be learned from them.
        """

    @property
    def num_sequences(self) -> int:
        """Sequences S of a unit."""
        return 1

    def units(self, example: Example) -> list[Unit]:
        """The units of an example, with labels if it has one.

        Raises:
          DataError: the label is none that the model knows.
        """
        raise NotImplementedError

    def training_units(self, examples: Sequence[Example]):
        """Units to learn from: a list, or a function of the epoch that gives one."""
        return [unit for example in examples for unit in self.units(example)]

    def predict(self, example: Example, outputs: list[Arrays]) -> Prediction:
        """What is predicted for an example, as `json.dumps` takes it.

        Args:
          example: the example.
          outputs: the head's outputs for each of its units, without the unit axis.
        """
        raise NotImplementedError

    def evaluate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """Figures of predictions against labels."""
        raise NotImplementedError

    def draw(self, axes, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Draws a picture of an evaluation on matplotlib axes."""
        raise NotImplementedError

    def finish(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Sets in `config.task` what is chosen on dev, such as a threshold."""

    def pack(self, texts: Sequence[Sequence[int]]) -> Arrays:
        """One sequence of up to `max_length` tokens, without padding."""
        needed = sum(len(text) for text in texts) + len(texts) + 1
        if needed > self.config.task.max_length:
            self.counts["truncated"] += 1
        return self._packed(texts, self.config.task.max_length)

    def read(self, texts: Sequence[str]) -> list[Arrays]:
        """The sequences of texts that are read together: one, or the windows of a long text."""
        task = self.config.task
        ids = [self.tokenizer.encode(text) for text in texts]
        if task.long_texts == "truncate":
            return [self.pack(ids)]
        sequences = self._windows(ids) if task.long_texts == "windows" else self._segments(ids)
        return sequences

    def _windows(self, ids: list[list[int]]) -> list[Arrays]:
        """Windows over the longest text; the other texts are in each of them."""
        task = self.config.task
        longest = max(range(len(ids)), key=lambda k: len(ids[k]))
        others = sum(len(text) for k, text in enumerate(ids) if k != longest)
        room = max(1, task.max_length - others - len(ids) - 1)
        stride = min(task.window_stride, room)
        limit = room + stride * (task.max_windows - 1)
        if len(ids[longest]) > limit:
            self.counts["truncated"] += 1
        text = truncated(ids[longest], limit, task.truncation_side)
        windows = []
        for start in range(0, max(0, len(text) - room) + stride, stride):
            texts = [*ids[:longest], text[start : start + room], *ids[longest + 1 :]]
            windows.append(self._packed(texts, task.max_length))
        return windows + [{}] * (task.max_windows - len(windows))

    def _segments(self, ids: list[list[int]]) -> list[Arrays]:
        """One long sequence in segments of `max_length`; the first one may be shorter or empty."""
        task = self.config.task
        size, limit = task.max_length, task.max_length * task.max_windows
        needed = sum(map(len, ids)) + len(ids) + 1
        if needed > limit:
            self.counts["truncated"] += 1
        arrays = self._packed(ids, limit)
        stops = [min(needed, limit) - n * size for n in reversed(range(task.max_windows))]
        return [
            {name: x[max(0, stop - size) : stop] for name, x in arrays.items()} if stop > 0 else {}
            for stop in stops
        ]

    def _packed(self, texts: Sequence[Sequence[int]], length: int) -> Arrays:
        """One sequence of up to `length` tokens, without padding."""
        packed = pack_texts(texts, length, self.config.task.truncation_side)
        is_real = ~packed["is_padding"]
        return {name: packed[name][is_real] for name in ("token_ids", "segment_ids")}

    def empty(self, texts: Sequence[str]) -> bool:
        """Whether there is nothing to read."""
        return not any(text.strip() for text in texts)


TaskClass = TypeVar("TaskClass", bound=type[Task])
TASKS: Registry[type[Task]] = Registry("task.name")


def register_task(name: str) -> Callable[[TaskClass], TaskClass]:
    """Decorator that makes a subclass of `Task` a fine-tuning task.

    Its outputs are those of the head of the same name (`register_head`).

    Args:
      name: the value of `task.name` that selects it.

    Raises:
      ConfigError: the name is taken.

    Example:
      >>> @register_task("stars")
      ... class Stars(TextTask):
      ...     def label(self, example): ...
    """
    return TASKS.register(name)


def one_hot(index: Sequence[int], size: int) -> np.ndarray:
    """float32 [size] with ones at some places."""
    array = np.zeros(size, np.float32)
    array[list(index)] = 1
    return array
