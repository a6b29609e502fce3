"""Joint training on several data sets: one encoder, a head for each, sampling by size."""

from __future__ import annotations

import copy

import numpy as np

from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.tasks.text_classification import Classification, Regression


@register_task("multitask")
class MultiTask(Task):
    """Every batch is of one data set; each example is seen once in an epoch, so data sets are
    sampled by their sizes. Data sets whose labels are numbers are regressions.

    Classes are `subtask/class` in `task.labels`; a subtask without any is a regression.
    """

    metric = "mean"

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.parts: dict[str, Classification | Regression] = {}
        for name in config.task.subtasks:
            part = copy.deepcopy(config)
            labels = [x.removeprefix(f"{name}/") for x in config.task.labels if _is_of(name, x)]
            part.task.labels, part.task.metric = tuple(labels), ""
            self.parts[name] = (Classification if labels else Regression)(part, tokenizer)
            self.parts[name].counts = self.counts

    @classmethod
    def complete(cls, config, examples):
        labels: list[str] = []
        for name in config.task.subtasks:
            own = [example for example in examples if example.subtask == name]
            found = {example.label for example in own}
            if len(found) < 2:
                raise DataError(f"training data of {name}: expected different labels, got one")
            if not any(isinstance(label, float) for label in found):
                labels += sorted(f"{name}/{label}" for label in found)
        config.task.labels = tuple(labels)

    @property
    def num_sequences(self) -> int:
        """Windows of a long text, or 1."""
        return next(iter(self.parts.values())).num_sequences

    def units(self, example):
        units = self._part(example).units(example)
        for unit in units:
            self._finish(unit, example.subtask)
        return units

    def training_units(self, examples):
        units = []
        for name, part in self.parts.items():
            own = [example for example in examples if example.subtask == name]
            units += [self._finish(unit, name) for unit in part.training_units(own)]
        return units

    def predict(self, example, outputs):
        own = [{"logits": output[example.subtask]} for output in outputs]
        return {"subtask": example.subtask, **self._part(example).predict(example, own)}

    def evaluate(self, examples, predictions):
        """The figures of every data set, `subtask/figure`, and the mean of their main ones."""
        figures: dict[str, float] = {}
        main = []
        for name, part in self.parts.items():
            own = [k for k, example in enumerate(examples) if example.subtask == name]
            if own:
                of_part = part.evaluate([examples[k] for k in own], [predictions[k] for k in own])
                main.append(of_part[part.metric])
                figures |= {f"{name}/{figure}": value for figure, value in of_part.items()}
        return {"mean": float(np.mean(main)), **figures}

    def draw(self, axes, examples, predictions):
        """The main figure of every data set."""
        figures = self.evaluate(examples, predictions)
        names = [name for name in self.parts if f"{name}/{self.parts[name].metric}" in figures]
        axes.bar(names, [figures[f"{name}/{self.parts[name].metric}"] for name in names])
        axes.set(ylim=(0, 1), title="Main figures")

    def _part(self, example: TextExample) -> Classification | Regression:
        if example.subtask not in self.parts:
            raise DataError(
                f"{example.id}: expected a data set of {', '.join(self.parts)}, got "
                f"{example.subtask!r}"
            )
        return self.parts[example.subtask]

    def _finish(self, unit: Unit, subtask: str) -> Unit:
        """All data sets have arrays of the same kinds, and say which head they are for."""
        if "label" in unit.labels:
            unit.labels["label"] = np.asarray(unit.labels["label"], np.float32)
        unit.labels["subtask"] = np.array(list(self.parts).index(subtask), np.int32)
        return unit


def _is_of(name: str, label: str) -> bool:
    return label.startswith(f"{name}/")
