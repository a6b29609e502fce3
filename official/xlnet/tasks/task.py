"""Task interface: preprocessing of examples, predictions, metrics and a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ArgumentTypeError
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tokenization.graph.packing import pack_texts, truncated
from official.xlnet.tokenization.tokenizer import Tokenizer

Prediction = dict[str, Any]
# Of `Task.counts`, those of training examples that the model learns nothing from.
UNUSABLE = ("skipped_empty", "answers_in_no_window")


class Task:
    """Base class of tasks. Subclasses override `complete`, `units`, `predict`, `evaluate`, `draw`.

    For ensembles they override `combine`; for plain rows of Python, `labelled` and `unlabelled`.

    Args:
      config: the experiment configuration, with a complete `config.task`, including labels.
      tokenizer: tokenizer of the model.

    Attributes:
      metric: name of the metric that checkpoints are compared by; higher is better.
      labels: `task.labels`; for a data set of `multitask`, its own classes.
      counts: numbers of examples by what happened to them in preprocessing, e.g. `truncated`, and
        those of tokens, see `Tokenizer.counts`.
    """

    metric = "accuracy"

    def __init__(self, config: XLNetConfig, tokenizer: Tokenizer):
        self.config = config
        self.labels = config.task.labels
        self.tokenizer = tokenizer
        self.counts = tokenizer.counts

    @classmethod
    def complete(cls, config: XLNetConfig, examples: Sequence[Example]) -> None:
        """Fills in the settings of `config.task` that follow from the training examples.

        Args:
          config: the experiment configuration, changed in place.
          examples: the training examples.

        Raises:
          DataError: the examples cannot be trained on.
        """

    @classmethod
    def labelled(cls, row: Sequence[Any], number: int) -> Example:
        """Converts a row of Python that ends in a label to an example.

        Args:
          row: at least two values.
          number: number of the row, its id.

        Raises:
          TypeError: the row is not of the right form.
          DataError: the label is missing.
        """
        return cls.unlabelled(row, number)

    @classmethod
    def unlabelled(cls, row: Any, number: int) -> Example:
        """Converts a row of Python to predict to an example; see `labelled`."""
        package = cls.__module__.rpartition(".")[0]
        raise ArgumentTypeError(
            f"example {number}: expected one of {package}.examples, as tuples say too little for "
            f"{cls.__name__}"
        )

    @classmethod
    def name_columns(cls, examples: Sequence[Example], task: TaskConfig) -> None:
        """Fills in the text columns of a new task from plain examples, or checks their number.

        Args:
          examples: the examples.
          task: settings of the task, changed in place.

        Raises:
          DataError: an example has another number of texts than the task.
        """

    @classmethod
    def keep(cls, task: TaskConfig, saved: TaskConfig) -> None:
        """Sets what a run that is resumed has, and a new one would choose otherwise.

        Args:
          task: settings of the task, changed in place.
          saved: settings of the run that is resumed.
        """

    def units(self, example: Example) -> list[Unit]:
        """Converts an example to units, with labels if the example has one.

        Args:
          example: the example.

        Raises:
          DataError: the label is unknown, or the example does not fit the configuration.
        """
        raise NotImplementedError

    def training_units(self, examples: Sequence[Example]):
        """Converts the training examples to units.

        Args:
          examples: the training examples.

        Returns:
          A list of units, or a function from the epoch number to one.
        """
        return [unit for example in examples for unit in self.units(example)]

    def predict(self, example: Example, outputs: list[Arrays]) -> Prediction:
        """Converts the model's outputs for an example to a JSON-serializable prediction.

        Args:
          example: the example.
          outputs: outputs of the head for each unit of the example, without the unit axis.
        """
        raise NotImplementedError

    def evaluate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, float]:
        """Computes the metrics of predictions.

        Args:
          examples: examples with labels.
          predictions: their predictions, as `predict` returns them.
        """
        raise NotImplementedError

    def draw(self, axes, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Draws a plot of an evaluation on matplotlib axes.

        Args:
          axes: the axes.
          examples: examples with labels.
          predictions: their predictions, as `predict` returns them.
        """
        raise NotImplementedError

    def finish(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Sets the settings of `config.task` that are tuned on dev, such as a threshold.

        Args:
          examples: dev examples with labels.
          predictions: their predictions, as `predict` returns them.
        """

    def combine(self, predictions: Sequence[Prediction]) -> Prediction:
        """Combines the predictions of several models for one example (an ensemble).

        The models may differ in everything but their task and its labels: their predictions are
        averaged, not tensors.

        Args:
          predictions: one of each model, as `predict` returns them.
        """
        raise NotImplementedError

    def join(self, members: Sequence[TaskConfig]) -> None:
        """Averages the settings that `finish` has tuned over the models of an ensemble.

        Args:
          members: sections of the models, of which the first is that of this task.
        """

    def pack(self, texts: Sequence[Sequence[int]]) -> Arrays:
        """Packs tokenized texts into one sequence of up to `task.max_length` tokens.

        Args:
          texts: token ids of each text.

        Returns:
          `token_ids` and `segment_ids`, int32 [T], without padding.
        """
        needed = sum(len(text) for text in texts) + len(texts) + 1
        if needed > self.config.task.max_length:
            self.counts["truncated"] += 1
        return self._packed(texts, self.config.task.max_length)

    def read(self, texts: Sequence[str]) -> list[Arrays]:
        """Tokenizes texts that form one input.

        Args:
          texts: the texts.

        Returns:
          One sequence, or as many as `TaskConfig.orders` or, for windows of a long text,
          `task.max_windows` say.
        """
        task = self.config.task
        ids = [self.tokenizer.encode(text) for text in texts]
        if task.long_texts == "truncate":
            return [self.pack([ids[i] for i in order]) for order in task.orders(len(ids))]
        sequences = self._windows(ids) if task.long_texts == "windows" else self._segments(ids)
        return sequences

    def _windows(self, ids: list[list[int]]) -> list[Arrays]:
        """Sliding windows over the longest text, each with the other texts in full."""
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
        """Splits one long sequence into segments of `max_length`; the first may be shorter."""
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
        """Packs texts into one sequence of up to `length` tokens, without padding."""
        packed = pack_texts(texts, length, self.config.task.truncation_side)
        is_real = ~packed["is_padding"]
        return {name: packed[name][is_real] for name in ("token_ids", "segment_ids")}

    def empty(self, texts: Sequence[str]) -> bool:
        """Returns whether all texts are empty or white space."""
        return not any(text.strip() for text in texts)


TaskClass = TypeVar("TaskClass", bound=type[Task])


def register_task(name: str) -> Callable[[TaskClass], TaskClass]:
    """Decorator that registers a subclass of `Task` as a fine-tuning task.

    Its model uses the head that is registered under the same name (`register_head`).

    Args:
      name: value of `task.name` that selects it.

    Raises:
      ConfigError: a task is already registered under the name.

    Example:
      >>> @register_task("stars")
      ... class Stars(TextTask):
      ...     def label(self, example): ...
    """
    return TASKS.register(name)


def one_hot(index: Sequence[int], size: int) -> np.ndarray:
    """Multi-hot vector, float32 [size].

    Args:
      index: indices of the ones.
      size: length of the vector.

    Example:
      >>> one_hot([0, 2], size=4).tolist()
      [1.0, 0.0, 1.0, 0.0]
    """
    array = np.zeros(size, np.float32)
    array[list(index)] = 1
    return array
