"""Multi-task fine-tuning: one encoder, a head for each data set."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.registry import DATASETS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.errors import require_data
from official.xlnet.tasks.settings import AnswerModuleConfig, CandidatesConfig

FORMATS = ()  # No other format has its head.

_NUMBER = re.compile(r"[-+]?\d*\.?\d+")
_RANKED = ("document", "query")  # Texts of a ranking, as they are packed.
_SPLITS = {"train", "validation", "dev", "test"}  # Of one data set, as a `DatasetDict` has them.


@register_settings("task", name=["multitask"])
class MultitaskConfig(AnswerModuleConfig, CandidatesConfig):
    """Several data sets. `NAME/COLUMN` in `text_columns` is a column of one of them.

    Attributes:
      subtasks: names of the data sets in the order of the heads.
      regressions: names of own data sets whose labels are numbers.
      rankings: names of own data sets whose documents are ranked; known ones are added.
    """

    of_head = (*AnswerModuleConfig.of_head, "subtasks")

    subtasks: tuple[str, ...] = ()
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
        prefix, number = f"{subtask}/", self.subtasks.index(subtask)
        labels = [label for label in self.labels if label.startswith(prefix)]
        own = {
            "name": "classification" if labels else "regression",
            "labels": tuple(label.removeprefix(prefix) for label in labels),
            "text_columns": self.columns_of(subtask),
            "metric": DATASETS.find(subtask, {}).get("metric", ""),
            "target_means": self.target_means[number : number + 1],
            "target_scales": self.target_scales[number : number + 1],
        }
        if subtask in self.rankings:
            own |= {"name": "ranking", "scoring": "summary"}
        if not (labels and len(self.columns_of(subtask)) == 2):  # MT-DNN: a pair is compared.
            own["answer_module"] = "summary"
        apart = dict.fromkeys(("subtasks", "regressions", "rankings"), ())
        return self.updated(apart | own, "")

    def columns_of_parts(self) -> dict[str, tuple[str, ...]]:
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

    def files(self, source: Any) -> Iterator[tuple[str, Any, TaskConfig]]:
        files: dict[str, Any] = {}
        if isinstance(source, Mapping):
            files.update(source)
        elif isinstance(source, str):
            for item in source.split(","):
                name, equals, part = item.partition("=")
                expected = "each NAME once" if equals else "NAME=FILE,NAME=FILE"
                is_new = bool(equals) and name not in files
                require_data(is_new, "multitask data", expected, repr(item))
                files[name] = part
        else:
            got = type(source).__name__
            require_data(bool(self.subtasks), "multitask data", "{name: table}", got)
            yield "", source, self
        expected, got = "{name of a data set: table}", f"splits: {', '.join(files)}"
        are_splits = type(source).__name__.endswith("DatasetDict") or (
            bool(files) and not self.subtasks and files.keys() <= _SPLITS
        )
        require_data(not are_splits, "multitask data", expected, got)
        prefixes = tuple(f"{name}/" for name in (*self.subtasks, *files))
        of_all = [column for column in self.text_columns if not column.startswith(prefixes)]
        if not self.subtasks and files.keys() <= {*DATASETS.names()}:
            of_label = [] if self.label_column == TaskConfig.label_column else [self.label_column]
            expected = f"no setting, as the columns of {', '.join(files)} are known"
            require(not of_all, "task.text_columns", expected, of_all)
            require(not of_label, "task.label_column", expected, of_label)
        for name, part in files.items():
            yield name, part, self._settings_of(name, tuple(of_all))

    def _settings_of(self, name: str, of_all: tuple[str, ...]) -> TaskConfig:
        """How the file of a data set is read."""
        own = self.columns_of(name)
        known = DATASETS.find(name)
        if known is None:
            kinds = dict.fromkeys(self.regressions, "regression")
            if name in self.rankings:
                return TaskConfig(name="ranking", columns=self.columns)
            return TaskConfig(
                name=kinds.get(name, "classification"),
                columns=self.columns,
                text_columns=own or of_all,
                label_column=self.label_column,
                group_column=self.group_column,
            )
        require_data(
            known["name"] in ("classification", "regression", "ranking"),
            "multitask data",
            "data of classification, regression or ranking",
            f"{name} ({known['name']})",
        )
        has_columns = own and known["name"] != "ranking"  # The reader names its texts.
        return TaskConfig(**known | ({"text_columns": own} if has_columns else {}))

    def take(self, parts: Sequence[tuple[str, str, TaskConfig, Sequence[Any]]]) -> None:
        for name, path, settings, examples in parts:
            if settings.name == "classification" and name not in DATASETS:
                labels = [str(example.label) for example in examples]
                numbers = [float(label) for label in labels if _NUMBER.fullmatch(label)]
                other = next((number for number in numbers if number % 1), None)
                require_data(
                    len(numbers) < len(labels) or other is None,
                    path,
                    "class names",
                    f"numbers such as {other}; task.regressions=[{name}] predicts numbers",
                )
        if not self.subtasks:
            for part in parts:
                part[2].take([part])  # Examples of the task's own class have no columns.
            self.subtasks = tuple(name for name, *_ in parts)
            texts = {
                name: _RANKED if task.name == "ranking" else task.text_columns
                for name, _, task, _ in parts
            }
            self.text_columns = tuple(f"{name}/{c}" for name in texts for c in texts[name])
            self.rankings = tuple(name for name, _, task, _ in parts if task.name == "ranking")
