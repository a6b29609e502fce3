"""Task interface: preprocessing of examples, predictions, metrics and a plot."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import fnmatch
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import tensorflow as tf

from official.xlnet.configs.base import with_former_methods
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import require_config
from official.xlnet.tasks.batching import Arrays, Unit
from official.xlnet.tasks.labels import in_numerical_order
from official.xlnet.tokenization.graph.packing import needed_lengths, pack
from official.xlnet.tokenization.graph.ragged import ragged, rows_of
from official.xlnet.tokenization.tokenizer import Tokenizer

Prediction = dict[str, Any]
# Keys of `Task.counts` for training examples that the model learns nothing from.
UNUSABLE = ("skipped_empty", "answers_in_no_window")
# Metrics for which lower is better.
ERRORS = ("loss", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error")
NUMBER_METRICS = ("pearson", "spearman", "r2", *ERRORS[1:])  # Metrics of predicted numbers.
_FORMER_METHODS = {
    "complete": "complete_settings",
    "finish": "tune_settings",
    "join": "average_tuned_settings",
    "judge": "error_and_probability",
}
_READ_AT_ONCE = 1024  # Examples whose texts become tensors together.


class Task:
    """Base class of tasks.

    Subclasses override `complete_settings`, `read`, `predict` and `evaluate`; for a plot of their
    own `draw`, for ensembles `combine`.

    Args:
      config: the experiment configuration, with a complete `config.task`, including labels.
      tokenizer: tokenizer of the model.

    Attributes:
      metric: name of the metric that checkpoints are compared by; see `comparable`.
      metric_note: what a line says after the name of the metric, such as how it is computed.
      metrics: names of the metrics that `evaluate` may return, where `*` stands for any characters.
      reads_long_texts: whether it reads `task.long_texts` other than `truncate`.
      typical: a few labelled examples, which `testing.check_task` trains on.
      predicts_numbers: whether it predicts one number for each example.
      has_ordered_classes: whether its classes have an order, such as grades: those that are no
        numbers then need `task.labels`, from the lowest to the highest.
      text_label: for a label of a whole text, what it is: `class`, `classes` or `number`; a bag of
        words can predict it.
      majority_name: what the line of baselines calls the baseline `majority`.
      labels: `task.labels`; for one of several data sets, its own classes.
      parts: the tasks of the data sets by their names (`example.subtask`); {} if there is only one.
      counts: numbers of examples by what happened to them in preprocessing, e.g. `truncated`, and
        counts of tokens, see `Tokenizer.counts`.
      lengths: numbers of tokens that texts have before they are cut, with how many have each.
    """

    metric = "accuracy"
    metric_note = ""
    majority_name: ClassVar[str] = "majority class"
    predicts_numbers: ClassVar[bool] = False
    has_ordered_classes: ClassVar[bool] = False
    text_label: ClassVar[str] = ""
    metrics: ClassVar[tuple[str, ...]] = ()
    reads_long_texts: ClassVar[bool] = False
    typical: ClassVar[Sequence[Example]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        with_former_methods(cls, _FORMER_METHODS)

    def __init__(self, config: XLNetConfig, tokenizer: Tokenizer):
        self.config = config
        self.labels = config.task.labels
        self.parts: dict[str, Task] = {}
        self.tokenizer = tokenizer
        self.counts = tokenizer.counts
        self.lengths: collections.Counter[int] = collections.Counter()

    @classmethod
    def complete_settings(cls, config: XLNetConfig, examples: Sequence[Example]) -> None:
        """Fills in the settings of `config.task` that follow from the training examples.

        Args:
          config: the experiment configuration, changed in place.
          examples: the training examples.

        Raises:
          DataError: the examples cannot be trained on.
        """

    def units(self, examples: Iterable[Example]) -> Iterator[list[Unit]]:
        """Yields the units of each example, with labels if it has one; see `read`."""
        return in_parts(self.read, examples)

    def read(self, examples: Sequence[Example]) -> list[list[Unit]]:
        """Converts a few examples to units, with the functions that an exported model calls.

        Args:
          examples: the examples.

        Returns:
          The units of each example.

        Raises:
          DataError: the label is unknown, or an example does not fit the configuration.
        """
        raise NotImplementedError

    def training_units(self, examples: Sequence[Example]):
        """Converts the training examples to units.

        Args:
          examples: the training examples.

        Returns:
          A list of units, or a function from the epoch number to one.
        """
        units = []
        for units_of_example in self.units(examples):
            units += [dataclasses.replace(unit, places={}) for unit in units_of_example]
        return units

    def predict(self, example: Example, outputs: list[Arrays]) -> Prediction:
        """Converts the model's outputs for an example to a JSON-serializable prediction.

        Args:
          example: the example.
          outputs: outputs of the head for each unit of the example, without the unit axis, and
            the `places` of the unit.
        """
        raise NotImplementedError

    def evaluate(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, float | None]:
        """Computes the metrics of predictions; None for undefined ones, which choose no checkpoint.

        Args:
          examples: examples with labels.
          predictions: their predictions, as `predict` returns them.
        """
        raise NotImplementedError

    def means_over(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, str]:
        """Returns {metric: the classes or data sets that it is the mean over}, if not all occur.

        Args:
          examples: examples with labels.
          predictions: their predictions, as `predict` returns them.
        """
        return {}

    def baselines(self, examples: Sequence[Example]) -> dict[str, dict[str, Any]] | None:
        """Returns the metrics of predictions that come with the examples, by what made them.

        Args:
          examples: examples with labels.
        """
        return None

    def details(
        self, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> dict[str, Any]:
        """Returns further entries of `metrics.json`, such as metrics of each class."""
        return {}

    def error_and_probability(
        self, example: Example, prediction: Prediction
    ) -> tuple[float, float]:
        """Returns the error of a prediction, 0 if it is right, and its probability.

        A NaN stands for an unknown value: the report then leaves out errors or calibration.

        Args:
          example: an example with a label.
          prediction: its prediction, as `predict` returns it.
        """
        return math.nan, math.nan

    def draw(self, axes, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Draws a plot of an evaluation on matplotlib axes: its metrics, unless overridden.

        Args:
          axes: the axes.
          examples: examples with labels.
          predictions: their predictions, as `predict` returns them.
        """
        metrics = self.evaluate(examples, predictions)
        defined = {name: value for name, value in metrics.items() if value is not None}
        axes.barh(list(defined), list(defined.values()))

    def tune_settings(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Tunes settings of `config.task` on dev after training, such as a threshold.

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

    def average_tuned_settings(self, members: Sequence[TaskConfig]) -> None:
        """Averages the settings that `tune_settings` has tuned over the models of an ensemble.

        Args:
          members: sections of the models; the first one belongs to this task.
        """

    @property
    def positive_class(self) -> str | None:
        """The class that the metric `f1` is of; None where it is of no single class."""
        return None

    def tokens(self, texts: Iterable[str]) -> tf.RaggedTensor:
        """Tokenizes texts: ids int32 [number of texts, (number of tokens)]."""
        return ragged(self.tokenizer.encode_batch(texts))

    def pack(self, columns: Sequence[tf.RaggedTensor]) -> list[Arrays]:
        """Packs tokenized texts into sequences of up to `task.max_length` tokens.

        Args:
          columns: for each text of a sequence, ids int32 [number of sequences, (number of tokens)].

        Returns:
          `token_ids` and `segment_ids` of each sequence, int32 [T], without padding.
        """
        task = self.config.task
        self.lengths.update(needed_lengths(columns).numpy().tolist())
        self.count("truncated", needed_lengths(columns) > task.max_length)
        return rows_of(pack(columns, task.max_length, task.truncation_side))

    def count(self, name: str, is_counted: Any) -> None:
        """Adds the number of true elements of an array to `counts`, if there are any."""
        num_counted = int(np.count_nonzero(is_counted))
        if num_counted:
            self.counts[name] += num_counted

    def empty(self, texts: Sequence[str]) -> bool:
        """Returns whether all texts are empty or white space."""
        return not any(text.strip() for text in texts)


with_former_methods(Task, _FORMER_METHODS)

Item = TypeVar("Item")
Read = TypeVar("Read")


def in_parts(read: Callable[[list[Item]], list[Read]], items: Iterable[Item]) -> Iterator[Read]:
    """Calls `read` with a thousand items at a time, and yields its output for each item."""
    items = iter(items)
    while part := list(itertools.islice(items, _READ_AT_ONCE)):
        with tf.device("cpu"):
            outputs = read(part)
        yield from outputs


def in_groups(
    read: Callable[[Any, list[Item]], list[Read]],
    items: Sequence[Item],
    key: Callable[[Item], Any],
) -> list[Read]:
    """Calls `read` with the items of each key, and returns its outputs in the order of the items.

    Args:
      read: function (key, items with this key) to an output for each item.
      items: the items.
      key: key of an item.
    """
    groups = collections.defaultdict(list)
    for index, item in enumerate(items):
        groups[key(item)].append(index)
    outputs: dict[int, Read] = {}
    for group_key, indices in groups.items():
        outputs_of_group = read(group_key, [items[index] for index in indices])
        outputs |= zip(indices, outputs_of_group, strict=True)
    return [outputs[index] for index in range(len(items))]


def complete_task(task: type[Task], config: XLNetConfig, examples: Sequence[Example]) -> None:
    """Fills in the settings of `config.task` by `Task.complete_settings`; ordered classes in order.

    Args:
      task: the class of the task.
      config: the experiment configuration, changed in place.
      examples: the training examples.

    Raises:
      DataError: the examples cannot be trained on, or the order of classes is unknown.
    """
    has_labels = bool(config.task.labels)
    task.complete_settings(config, examples)
    if task.has_ordered_classes and not has_labels:
        config.task.labels = in_numerical_order(config.task.labels)


TaskClass = TypeVar("TaskClass", bound=type[Task])


def register_task(name: str) -> Callable[[TaskClass], TaskClass]:
    """Decorator that registers a subclass of `Task` as a fine-tuning task.

    Its model uses the head that is registered under the same name (`register_head`).

    Args:
      name: value of `task.name` that selects it.

    Raises:
      ConfigError: a task is already registered under the name, or its `metric` is not among its
        `metrics`.

    Example:
      >>> @register_task("stars")
      ... class Stars(TextTask):
      ...     def label(self, example): ...
    """

    def register(task: TaskClass) -> TaskClass:
        example = task.__new__(task)
        example.config = XLNetConfig.from_dict({"task": {"name": name}})
        with contextlib.suppress(AttributeError):  # A property that reads more than the settings.
            require_metric(task, example.metric, f"metric of the task {name!r}")
        return TASKS.register(name)(task)

    return register


def require_metric(task: type[Task], metric: str, where: str) -> None:
    """Raises `ConfigError` if a metric is not among those that a task declares, if it does.

    Args:
      task: the class of the task. A subclass with its own `evaluate` and no `metrics` declares
        none.
      metric: name of the metric.
      where: names the setting in the error.
    """
    owner = next(part for part in task.__mro__ if {"evaluate", "metrics"} & vars(part).keys())
    known = vars(owner).get("metrics", ())
    is_known = any(fnmatch.fnmatchcase(metric, name) for name in known)
    require_config(is_known or not known, where, f"one of {', '.join(known)}", repr(metric))


def comparable(metric: str, value: float | None) -> float:
    """Returns the value of a metric so that higher is better; minus infinity if undefined.

    Example:
      >>> comparable("accuracy", 0.5), comparable("stsb/loss", 0.5), comparable("pearson", None)
      (0.5, -0.5, -inf)
    """
    if value is None:
        return -math.inf
    return -value if metric.rpartition("/")[2] in ERRORS else value


def metrics_of(
    task: Task, examples: Sequence[Example], predictions: Sequence[Prediction]
) -> dict[str, Any]:
    """Returns the metrics of predictions, with `NAME_is_over` for means over some classes only.

    Args:
      task: the task.
      examples: examples with labels.
      predictions: their predictions, as `Task.predict` returns them.
    """
    metrics = dict[str, Any]()
    for name, value in task.evaluate(examples, predictions).items():
        metrics[name] = None if value is None else float(value)
    over = task.means_over(examples, predictions)
    return metrics | {f"{name}_is_over": classes for name, classes in over.items()}


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
