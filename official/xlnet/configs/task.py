"""`task` section of the configuration: the fine-tuning task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from official.xlnet.configs.base import Section
from official.xlnet.configs.former_modules import with_former_methods
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

_FORMER_METHODS = {"take": "complete_from_files"}


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
      num_buckets: number of length buckets that inputs are padded to: T, T/2, T/4, …
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

    name: Annotated[str, TASKS] = ""
    labels: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    label_column: str = "label"
    label_type: Annotated[str, OneOf(("str", "int", "float", "bool"))] = "str"
    group_column: str = ""
    max_length: Annotated[int, COUNT] = 128
    truncation_side: Annotated[str, OneOf(("right", "left"))] = "right"
    num_buckets: Annotated[int, COUNT] = 3
    summary: Annotated[str, OneOf(("last", "first", "mean", "attn"))] = "last"
    metric: str = ""
    patience: Annotated[int, COUNT_OR_NONE] = 0
    epochs: Annotated[float, NOT_NEGATIVE] = 0.0
    lm_weight: Annotated[float, NOT_NEGATIVE] = 0.0
    freeze_encoder: bool = False
    long_texts: Annotated[str, OneOf(("truncate", "windows", "memory"))] = "truncate"
    window_stride: Annotated[int, COUNT] = 64
    max_windows: Annotated[int, COUNT] = 4
    pooling: Annotated[str, OneOf(("mean", "max"))] = "mean"
    pooled_segments: Annotated[str, OneOf(("all", "last"))] = "last"

    # Keys that a resumed run may change, and those that follow from the data where not given.
    may_change: ClassVar[tuple[str, ...]] = ("patience", "label_type")
    from_data: ClassVar[tuple[str, ...]] = ("text_columns",)
    # Values of `xlnet finetune` where the default is the meaning of older model directories.
    of_new_runs: ClassVar[Mapping[str, str]] = {"pooled_segments": "all"}
    # Keys that a trained head depends on, which a run that goes on with it takes from its model.
    of_head: ClassVar[tuple[str, ...]] = ("labels", "summary")
    # Keys that models of an ensemble have in common, as outputs follow from them.
    output_keys: ClassVar[tuple[str, ...]] = ("name", "labels")
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
        for key in self.others:
            owners = self.tasks_with(key)
            if self.name and owners and self.name not in owners:
                raise ConfigError(
                    f"task.{key}: a key of {', '.join(owners)}; task.name is {self.name}"
                )

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if the language model of `lm_weight` cannot be trained."""
        for key, value, words in (
            ("model.network", config.model.network, ("xlnet",)),
            ("objective.kind", config.objective.kind, ("permutation", "causal")),
        ):
            if self.lm_weight:
                where = f"{key} of a model that is fine-tuned with task.lm_weight"
                require_one_of(where, value, words)

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

    def target(self) -> tuple[float, float]:
        """Returns mean and scale of the labels of a regression; 0 and 1 if they are unscaled."""
        return 0.0, 1.0

    def auxiliary_losses(self) -> dict[str, float]:
        """Returns the weight of each loss beside the head's, by its name in `TASK_LOSSES`."""
        return {"language_model": self.lm_weight} if self.lm_weight else {}

    def orders(self, num_texts: int) -> list[list[int]]:
        """Returns the orders in which the texts of an input are read, each as one sequence.

        Args:
          num_texts: number of texts.
        """
        return [list(range(num_texts))]

    def columns_of_parts(self) -> dict[str, tuple[str, ...]]:
        """Returns {name of a subtask, or "" for a task without them: its text columns}."""
        return {"": self.text_columns}

    def named(self, row: Any, with_labels: bool, where: str) -> dict[str, Any]:
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
        if self.needs_names or (with_labels and not isinstance(row, list)):
            expected = (
                f"an example of {self.name} or a mapping with the columns of its tables"
                if self.needs_names
                else "a tuple that ends in a label, or a mapping of columns"
            )
            raise ArgumentTypeError(f"{where}: expected {expected}, got {row!r:.60}")
        values = row if isinstance(row, list) else [row]
        texts, label = (values[:-1], values[-1:]) if with_labels else (values, [])
        names = self.text_columns or self._numbered(len(texts))
        require_data(
            bool(texts) and len(texts) == len(names),
            where,
            f"{len(names)} text(s) ({', '.join(names)}){' and a label' if with_labels else ''}",
            f"{len(values)} value(s)",
        )
        self.text_columns = names
        return dict(zip((*names, self.label_column), [*texts, *label], strict=False))

    @staticmethod
    def _numbered(number: int) -> tuple[str, ...]:
        """Names of texts without names."""
        return tuple(f"text{n}" for n in range(1, number + 1)) if number > 1 else ("text",)

    def files(self, source: Any) -> Iterator[tuple[str, Any, TaskConfig]]:
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
            found = {len(example.texts) for example in examples if hasattr(example, "texts")}
            if self.needs_names or not found:
                continue
            # Examples of the task's own class have no columns.
            self.text_columns = self.text_columns or self._numbered(max(found))
            if others := found - {len(self.text_columns)}:
                raise DataError(
                    f"{path}: expected {len(self.text_columns)} text(s) "
                    f"({', '.join(self.text_columns)}) in each example, got {min(others)} in one"
                )


with_former_methods(TaskConfig, _FORMER_METHODS)
