"""`task` section of the configuration: the fine-tuning task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from official.xlnet.configs.base import Section, key_types, with_former_methods
from official.xlnet.configs.key_marks import FROM_DATA, MAY_CHANGE, OF_HEAD, OF_OUTPUTS, NewRuns
from official.xlnet.configs.registry import SETTINGS, TASKS
from official.xlnet.configs.validation import (
    COUNT,
    COUNT_OR_NONE,
    NOT_NEGATIVE,
    require,
    require_one_of,
)
from official.xlnet.errors import ArgumentTypeError, ConfigError, DataError, require_data
from official.xlnet.files.schema import OneOf

_FORMER_METHODS = {
    "auxiliary_losses": "auxiliary_loss_weights",
    "columns_of_parts": "text_columns_of_parts",
    "files": "parts_of_source",
    "named": "values_by_column",
    "orders": "text_orders",
    "take": "complete_from_files",
    "target": "label_mean_and_scale",
}


@dataclasses.dataclass
class TaskConfig(Section):
    """Fine-tuning task: data format, input length and metric.

    Each task adds the keys that only it has (`official/xlnet/tasks/<name>/__init__.py`).

    Attributes:
      name: task type, e.g. `classification`; empty for a pre-trained model.
      labels: class names in the order of the logits; empty: inferred from the training data.
      columns: column names of a table without a header row.
      text_columns: text columns, each encoded as its own segment; empty: all columns
        except the label, ids, numbers and dates. Of CoNLL files, the column of words, from 1.
      label_column: name of the label column, the same in all data sets of a task. Where a table has
        no column `label`, the only one with a usual name: `labels`, `class`, `target`, ….
      label_type: type of the labels in rows of Python: `str`, `int`, `float` or `bool`. Labels that
        `predict` returns have it; names of classes, and what files hold, are strings. With `int`,
        tags that are integers are places in `labels`.
      group_column: column whose rows with one value are held out together; empty: none.
      max_length: maximum sequence length in tokens, T; longer inputs are truncated.
      truncation_side: side from which long texts are truncated: `right` or `left`.
      num_buckets: number of length buckets that inputs are padded to: in training, at most as many
        lengths as fit the texts best; in prediction, T alone with 1, else 16, 24, 32, 48, 64, …
      summary: sequence summary: `last` (CLS), `first`, `mean` or `attn`.
      metric: metric that selects the best checkpoint; empty: the task's default metric.
      patience: number of evaluations without improvement before early stopping; 0 disables it.
      epochs: number of epochs; 0: train for `training.num_steps` steps.
      lm_weight: weight λ of the auxiliary language-model loss of GPT: loss of the task plus λ
        times the language-model loss of the text from left to right; 0: none.
      freeze_encoder: whether the encoder is frozen and only the head is trained.
      long_texts: handling of texts longer than `max_length`: `truncate`, `windows` (overlapping
        windows whose logits are pooled) or `memory` (segments with recurrent memory).
      window_stride: stride between windows of a long text or paragraph, in tokens.
      max_windows: maximum number of windows per text.
      pooling: pooling over the windows or segments of a long text: `mean` or `max`.
      pooled_segments: with `long_texts: memory`, the segments that are pooled: `all`, the default
        of `xlnet finetune`, or only the `last`, as in model directories without this key.
    """

    section = "task"
    chooser = "name"

    name: Annotated[str, TASKS, OF_OUTPUTS] = ""
    labels: Annotated[tuple[str, ...], OF_HEAD, OF_OUTPUTS] = ()
    columns: tuple[str, ...] = ()
    text_columns: Annotated[tuple[str, ...], FROM_DATA] = ()
    label_column: str = "label"
    label_type: Annotated[str, OneOf(("str", "int", "float", "bool")), MAY_CHANGE] = "str"
    group_column: str = ""
    max_length: Annotated[int, COUNT] = 128
    truncation_side: Annotated[str, OneOf(("right", "left"))] = "right"
    num_buckets: Annotated[int, COUNT] = 3
    summary: Annotated[str, OneOf(("last", "first", "mean", "attn")), OF_HEAD] = "last"
    metric: str = ""
    patience: Annotated[int, COUNT_OR_NONE, MAY_CHANGE] = 0
    epochs: Annotated[float, NOT_NEGATIVE] = 0.0
    lm_weight: Annotated[float, NOT_NEGATIVE] = 0.0
    freeze_encoder: bool = False
    long_texts: Annotated[str, OneOf(("truncate", "windows", "memory"))] = "truncate"
    window_stride: Annotated[int, COUNT] = 64
    max_windows: Annotated[int, COUNT] = 4
    pooling: Annotated[str, OneOf(("mean", "max"))] = "mean"
    pooled_segments: Annotated[str, OneOf(("all", "last")), NewRuns("all")] = "last"

    # Former marks of keys: classes of other packages may list them here; see `configs.validation`.
    may_change: ClassVar[tuple[str, ...]] = ()
    from_data: ClassVar[tuple[str, ...]] = ()
    of_head: ClassVar[tuple[str, ...]] = ()
    output_keys: ClassVar[tuple[str, ...]] = ()
    of_new_runs: ClassVar[Mapping[str, str]] = {}

    # Properties of a task that packages read which may not import the task: `data_prep`, the
    # checkpoints' formats, and commands before TensorFlow is imported. The methods below, too.
    has_subtasks: ClassVar[bool] = False  # Whether there are several data sets, each with a head.
    shortest_input: ClassVar[int] = 0  # Tokens of the shortest input that the head takes.
    needs_names: ClassVar[bool] = False  # Whether rows of Python have to name their values.
    weighs_examples: ClassVar[bool] = False  # Whether each example has a weight in the loss.
    has_text_columns: ClassVar[bool] = False  # Whether tables have texts and a label by these keys.
    # Whether labels are numbers, also where a data set has names for them.
    has_number_labels: ClassVar[bool] = False
    rank_of_rows: ClassVar[int] = 0  # Smallest rank of the values of a row in a tf.data data set.

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        with_former_methods(cls, _FORMER_METHODS)

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range, or a key belongs to another task."""
        super().check()
        require(
            len(set(self.labels)) == len(self.labels),
            "task.labels",
            "every label once",
            self.labels,
        )
        for key in self.keys_of_other_classes:
            owners = self.tasks_with(key)
            if self.name and owners and self.name not in owners:
                raise ConfigError(
                    f"task.{key}: a key of {', '.join(owners)}; task.name is {self.name}"
                )

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if the model or its objective lacks what the task reads."""
        require(
            self.long_texts != "memory" or config.model.mem_len > 0,
            "model.mem_len",
            "at least 1 with task.long_texts=memory",
            config.model.mem_len,
        )
        if self.lm_weight:
            where = "of a model that is fine-tuned with task.lm_weight"
            require_one_of(f"model.network {where}", config.model.network, ("xlnet",))
            objectives = ("permutation", "causal")
            require_one_of(f"objective.kind {where}", config.objective.kind, objectives)

    def tasks_with(self, key: str) -> list[str]:
        """Returns the tasks that a key is for: those with its class, or with that it extends.

        Args:
          key: the key, without its section.

        Returns:
          Values of `name`; an empty list for a key of every task.
        """
        owner: Any = SETTINGS.find(f"task.{key}", TaskConfig)
        classes = {name: SETTINGS.find(f"task.name={name}", TaskConfig) for name in TASKS.names()}
        while owner is not TaskConfig:
            if owners := [name for name in classes if issubclass(classes[name], owner)]:
                return owners
            owner = owner.__base__
        return []

    @classmethod
    def values_of_new_runs(cls) -> dict[str, Any]:
        """Returns {key: value} of `xlnet finetune` where it has another default; see `NewRuns`."""
        values: dict[str, Any] = {}
        for key, (_, marks) in key_types(cls).items():
            for mark in marks:
                if isinstance(mark, NewRuns):
                    values[key] = mark.value
        values.update(cls.of_new_runs)
        return values

    def label_mean_and_scale(self) -> tuple[float, float]:
        """Returns mean and scale of the labels of a regression; 0 and 1 if they are unscaled."""
        return 0.0, 1.0

    def auxiliary_loss_weights(self) -> dict[str, float]:
        """Returns the weight of each loss beside the head's, by its name in `TASK_LOSSES`."""
        return {"language_model": self.lm_weight} if self.lm_weight else {}

    def text_orders(self, num_texts: int) -> list[list[int]]:
        """Returns the orders in which the texts of an input are read, each as one sequence.

        Args:
          num_texts: number of texts.
        """
        return [list(range(num_texts))]

    def text_columns_of_parts(self) -> dict[str, tuple[str, ...]]:
        """Returns {name of a subtask, or "" for a task without them: its text columns}."""
        return {"": self.text_columns}

    def values_by_column(self, row: Any, with_labels: bool, where: str) -> dict[str, Any]:
        """Returns the values of a row of Python that has no names, by their columns.

        `text_columns` are filled in if they are empty.

        Args:
          row: a string, number or list.
          with_labels: whether the row ends in a label.
          where: names the row in an error.

        Raises:
          TypeError: the row is of another form, or the task needs names.
          DataError: the row has another number of texts than the task.
        """
        expected = ""
        if self.needs_names:
            expected = f"an example of {self.name} or a mapping with the columns of its tables"
        elif with_labels and not isinstance(row, list):
            expected = "a tuple that ends in a label, or a mapping of columns"
        if expected:
            raise ArgumentTypeError(f"{where}: expected {expected}, got {row!r:.60}")
        values = row if isinstance(row, list) else [row]
        texts = values[:-1] if with_labels else values
        names = self.text_columns or self._numbered(len(texts))
        expected = f"{len(names)} text(s) ({', '.join(names)})"
        if with_labels:
            expected += " and a label"
        is_complete = bool(texts) and len(texts) == len(names)
        require_data(is_complete, where, expected, f"{len(values)} value(s)")
        self.text_columns = names
        row_by_column = dict(zip(names, texts, strict=True))
        if with_labels:
            row_by_column[self.label_column] = values[-1]
        return row_by_column

    @staticmethod
    def _numbered(num_texts: int) -> tuple[str, ...]:
        """Names of texts without names: `text`, or `text1`, `text2`, …."""
        if num_texts <= 1:
            return ("text",)
        return tuple(f"text{number}" for number in range(1, num_texts + 1))

    def parts_of_source(self, source: Any) -> Iterator[tuple[str, Any, TaskConfig]]:
        """Yields (name of the subtask or "", path or rows, settings) of each part of a source.

        Args:
          source: the task's data, see `read_task`.

        Raises:
          DataError: the source is not of the right form.
        """
        yield "", source, self

    def complete_from_files(
        self, parts: Sequence[tuple[str, str, TaskConfig, Sequence[Any]]]
    ) -> None:
        """Fills in the settings that follow from the files that have been read.

        Args:
          parts: (name of the subtask, path, settings, examples) of each file.

        Raises:
          DataError: the examples do not suit the task.
        """
        for _, path, _, examples in parts:
            # Examples of the task's own class have no columns.
            text_counts = {len(example.texts) for example in examples if hasattr(example, "texts")}
            if self.needs_names or not text_counts:
                continue
            self.text_columns = self.text_columns or self._numbered(max(text_counts))
            wrong_counts = text_counts - {len(self.text_columns)}
            if wrong_counts:
                raise DataError(
                    f"{path}: expected {len(self.text_columns)} text(s) "
                    f"({', '.join(self.text_columns)}) in each example, got {min(wrong_counts)} in "
                    "one"
                )


with_former_methods(TaskConfig, _FORMER_METHODS)
