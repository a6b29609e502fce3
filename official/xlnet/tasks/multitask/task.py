"""Multi-task fine-tuning: one shared encoder, a head for each data set."""

from __future__ import annotations

import numpy as np

from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import DataError
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import keep_targets, target_of
from official.xlnet.tasks.task import Task, register_task
from official.xlnet.tasks.text_task import TextTask


@register_task("multitask")
class MultiTask(Task):
    """Joint training of text classification and regression on several data sets.

    Each batch is of one data set. Every example is seen once per epoch, so data sets are sampled
    in proportion to their sizes. `task.labels` lists classes as `subtask/class`. A data set with
    numeric labels, which has no classes there, is a regression.
    """

    metric = "mean"

    @classmethod
    def keep(cls, task, saved):
        keep_targets(task, saved)

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.parts: dict[str, TextTask] = {}
        for name in config.task.subtasks:
            labels = [x.removeprefix(f"{name}/") for x in self.labels if _is_of(name, x)]
            part = TASKS["classification" if labels else "regression"](config, tokenizer)
            part.labels = tuple(labels)
            self.parts[name] = part

    @classmethod
    def complete(cls, config, examples):
        labels: list[str] = []
        targets: list[tuple[float, float]] = []
        for name in config.task.subtasks:
            if not name or "/" in name:
                raise DataError(
                    f"multitask data: expected names without '/', which separates them from "
                    f"classes and metrics, got {name!r}"
                )
            own = [example for example in examples if example.subtask == name]
            found = {example.label for example in own}
            if len(found) < 2:
                raise DataError(
                    f"training data of {name}: expected at least two different labels, got one"
                )
            if any(isinstance(label, float) for label in found):
                targets.append(
                    target_of([example.label for example in own], f"training data of {name}")
                )
            else:
                labels += sorted(f"{name}/{label}" for label in found)
                targets.append((0.0, 1.0))
        config.task.labels = tuple(labels)
        if not config.task.target_means:
            config.task.target_means, config.task.target_scales = zip(*targets, strict=True)

    @property
    def num_sequences(self) -> int:
        """Number of windows of a long text; 1 if long texts are truncated."""
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

    def combine(self, predictions):
        return self.parts[predictions[0]["subtask"]].combine(predictions)

    def evaluate(self, examples, predictions):
        """Computes the metrics of each data set, as `subtask/metric`, and their `mean`.

        `mean` is over the main metric of each data set.
        """
        metrics: dict[str, float] = {}
        main = []
        for name, part in self.parts.items():
            own = [k for k, example in enumerate(examples) if example.subtask == name]
            if own:
                of_part = part.evaluate([examples[k] for k in own], [predictions[k] for k in own])
                main.append(of_part[part.metric])
                metrics |= {f"{name}/{metric}": value for metric, value in of_part.items()}
        return {"mean": float(np.mean(main)), **metrics}

    def draw(self, axes, examples, predictions):
        """Plots the main metric of each data set."""
        metrics = self.evaluate(examples, predictions)
        names = [name for name in self.parts if f"{name}/{self.parts[name].metric}" in metrics]
        axes.bar(names, [metrics[f"{name}/{self.parts[name].metric}"] for name in names])
        axes.set(ylim=(0, 1), title="Main metrics")

    def _part(self, example: TextExample) -> TextTask:
        if example.subtask not in self.parts:
            raise DataError(
                f"{example.id}: expected one of the data sets {', '.join(self.parts)}, got "
                f"{example.subtask!r}"
            )
        return self.parts[example.subtask]

    def _finish(self, unit: Unit, subtask: str) -> Unit:
        """Makes label dtypes the same for all data sets and adds the index of the head."""
        if "label" in unit.labels:
            unit.labels["label"] = np.asarray(unit.labels["label"], np.float32)
        unit.labels["subtask"] = np.array(list(self.parts).index(subtask), np.int32)
        return unit


def _is_of(name: str, label: str) -> bool:
    return label.startswith(f"{name}/")
