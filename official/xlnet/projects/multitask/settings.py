"""Keys of the section `task` of multi-task fine-tuning, and how its data is divided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.key_marks import OF_HEAD, OF_OUTPUTS
from official.xlnet.configs.registry import DATASETS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.errors import DataError, require_data
from official.xlnet.tasks.settings import AnswerModuleConfig, CandidatesConfig

_NUMBER = re.compile(r"[-+]?\d*\.?\d+")
_RANKED_TEXTS = ("document", "query")  # Texts of a ranking, as they are packed.
_SPLIT_NAMES = {"train", "validation", "dev", "test"}  # Splits of one data set (`DatasetDict`).
_OWN_TASKS = ("classification", "regression", "ranking")  # Task types that data sets may have.


@register_settings("task", name=["multitask"])
class MultitaskConfig(AnswerModuleConfig, CandidatesConfig):
    """Several data sets. `NAME/COLUMN` in `text_columns` is a column of one of them.

    Attributes:
      subtasks: names of the data sets in the order of the heads.
      regressions: names of own data sets whose labels are numbers.
      rankings: names of own data sets whose documents are ranked; known ones are added.
    """

    has_subtasks = True

    subtasks: Annotated[tuple[str, ...], OF_HEAD, OF_OUTPUTS] = ()
    regressions: tuple[str, ...] = ()
    rankings: tuple[str, ...] = ()

    def check(self) -> None:
        super().check()
        if self.rankings:
            require_one_of("task.long_texts with rankings", self.long_texts, ("truncate",))

    def part(self, subtask: str) -> TaskConfig:
        """Returns the settings of a subtask as a task of its own.

        Args:
          subtask: name of the subtask.
        """
        prefix = f"{subtask}/"
        index = self.subtasks.index(subtask)
        columns = self.columns_of(subtask)
        labels = [label for label in self.labels if label.startswith(prefix)]
        settings = {
            "name": "classification" if labels else "regression",
            "labels": tuple(label.removeprefix(prefix) for label in labels),
            "text_columns": columns,
            "metric": DATASETS.find(subtask, {}).get("metric", ""),
            "target_means": self.target_means[index : index + 1],
            "target_scales": self.target_scales[index : index + 1],
        }
        if subtask in self.rankings:
            settings["name"] = "ranking"
            settings["scoring"] = "summary"
        has_pairs_with_classes = bool(labels) and len(columns) == 2
        if not has_pairs_with_classes:  # As in MT-DNN, the answer module compares two texts.
            settings["answer_module"] = "summary"
        for key in ("subtasks", "regressions", "rankings"):
            settings[key] = ()
        return self.updated(settings, "")

    def text_columns_of_parts(self) -> dict[str, tuple[str, ...]]:
        return {name: self.columns_of(name) for name in self.subtasks}

    def columns_of(self, subtask: str) -> tuple[str, ...]:
        """Returns the text columns of a subtask: those that begin with its name.

        Args:
          subtask: name of the subtask.

        Example:
          >>> task = MultitaskConfig(text_columns=("mnli/sentence1", "sst2/sentence"))
          >>> task.columns_of("sst2")
          ('sentence',)
        """
        prefix = f"{subtask}/"
        columns = [column for column in self.text_columns if column.startswith(prefix)]
        return tuple(column.removeprefix(prefix) for column in columns)

    def parts_of_source(self, source: Any) -> Iterator[tuple[str, Any, TaskConfig]]:
        if not isinstance(source, Mapping | str):
            got = type(source).__name__
            require_data(bool(self.subtasks), "multitask data", "{name: table}", got)
            yield "", source, self
            return
        sources = _sources_by_name(source) if isinstance(source, str) else dict(source)
        is_dataset_dict = type(source).__name__.endswith("DatasetDict")
        has_split_names = bool(sources) and not self.subtasks and sources.keys() <= _SPLIT_NAMES
        require_data(
            not is_dataset_dict and not has_split_names,
            "multitask data",
            "{name of a data set: table}",
            f"splits: {', '.join(sources)}",
        )
        prefixes = tuple(f"{name}/" for name in (*self.subtasks, *sources))
        shared_columns = [name for name in self.text_columns if not name.startswith(prefixes)]
        if not self.subtasks and sources.keys() <= {*DATASETS.names()}:
            expected = f"no setting, as the columns of {', '.join(sources)} are known"
            require(not shared_columns, "task.text_columns", expected, shared_columns)
            has_label_column = self.label_column != TaskConfig.label_column
            require(not has_label_column, "task.label_column", expected, [self.label_column])
        for name, part in sources.items():
            yield name, part, self._settings_of_source(name, tuple(shared_columns))

    def _settings_of_source(self, name: str, shared_columns: tuple[str, ...]) -> TaskConfig:
        """Returns the settings that the file of a data set is read with.

        Args:
          name: name of the data set.
          shared_columns: `text_columns` without the name of a data set.
        """
        columns = self.columns_of(name)
        known_settings = DATASETS.find(name)
        if known_settings is not None:
            task_type = known_settings["name"]
            expected = "data of classification, regression or ranking"
            is_allowed = task_type in _OWN_TASKS
            require_data(is_allowed, "multitask data", expected, f"{name} ({task_type})")
            settings = dict(known_settings)
            if columns and task_type != "ranking":  # The reader of rankings names its texts.
                settings["text_columns"] = columns
            return TaskConfig.create(**settings)
        if name in self.rankings:
            return TaskConfig.create(name="ranking", columns=self.columns)
        return TaskConfig.create(
            name="regression" if name in self.regressions else "classification",
            columns=self.columns,
            text_columns=columns or shared_columns,
            label_column=self.label_column,
            group_column=self.group_column,
        )

    def complete_from_files(
        self, parts: Sequence[tuple[str, str, TaskConfig, Sequence[Any]]]
    ) -> None:
        for name, path, settings, examples in parts:
            if settings.name == "classification" and name not in DATASETS:
                _check_classes(path, name, [str(example.label) for example in examples])
        if self.subtasks:
            return
        text_columns: list[str] = []
        for part in parts:
            name, _, settings, _ = part
            settings.complete_from_files(
                [part]
            )  # Examples of the task's own class have no columns.
            columns = _RANKED_TEXTS if settings.name == "ranking" else settings.text_columns
            text_columns += [f"{name}/{column}" for column in columns]
        self.subtasks = tuple(name for name, _, _, _ in parts)
        self.text_columns = tuple(text_columns)
        self.rankings = tuple(name for name, _, task, _ in parts if task.name == "ranking")


def _sources_by_name(source: str) -> dict[str, Any]:
    """Parses `NAME=FILE,NAME=FILE`."""
    sources: dict[str, Any] = {}
    for item in source.split(","):
        name, equals, path = item.partition("=")
        require_data(bool(equals), "multitask data", "NAME=FILE,NAME=FILE", repr(item))
        require_data(name not in sources, "multitask data", "each NAME once", repr(item))
        sources[name] = path
    return sources


def _check_classes(path: str, name: str, labels: Sequence[str]) -> None:
    """Raises `DataError` if all labels are numbers and one of them is not an integer."""
    numbers = [float(label) for label in labels if _NUMBER.fullmatch(label)]
    fractions = [value for value in numbers if value % 1]
    if fractions and len(numbers) == len(labels):
        raise DataError(
            f"{path}: expected class names, got numbers such as {fractions[0]}; "
            f"task.regressions=[{name}] predicts numbers"
        )
