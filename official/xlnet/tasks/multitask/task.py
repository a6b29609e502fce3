"""Multi-task fine-tuning: one shared encoder, a head for each data set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import require_data
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import (
    check_forms,
    check_hidden,
    in_order,
    label_index,
    target_of,
)
from official.xlnet.tasks.multitask import MultitaskConfig
from official.xlnet.tasks.settings import AnswerModuleConfig
from official.xlnet.tasks.task import Task, in_groups, register_task

_JOINING = 2  # Random stream of the examples that form a unit; rankings use [seed, 1, epoch].
_OUTPUTS = ("logits", "score")  # Names of the output of a head.


@register_task("multitask")
class MultiTask(Task):
    """Joint training of text classification, regression and ranking on several data sets.

    Each batch comes from one data set. Every example is seen once per epoch, so data sets are
    sampled in proportion to their sizes. `task.labels` lists classes as `subtask/class`. A data
    set with numeric labels, which has no classes there, is a regression; `task.rankings` are
    ranked.
    """

    metric = "mean"
    metrics = ("mean", "loss", "*/*")
    reads_long_texts = True
    typical = tuple(
        TextExample(f"{start} {word}", (start, f"It was {word} ."), label, subtask)
        for start in ("Well .", "So .", "Now .")
        for subtask, labels in (
            ("tone", {"dull": "bad", "fine": "good", "poor": "bad", "great": "good"}),
            ("stsb", {"awful": 0.0, "fair": 2.0, "superb": 4.0}),
        )
        for word, label in labels.items()
    )

    def __init__(self, config, tokenizer):
        super().__init__(config, tokenizer)
        self.parts: dict[str, Task] = {}
        for name in config.task.subtasks:
            own = XLNetConfig.from_dict({}, base=config)
            own.task = config.task.part(name)
            self.parts[name] = TASKS[own.task.name](own, tokenizer)

    @classmethod
    def complete(cls, config, examples):
        labels: list[str] = []
        targets = dict.fromkeys(config.task.subtasks, (0.0, 1.0))
        for name in config.task.subtasks:
            require_data(
                bool(name) and "/" not in name,
                "multitask data",
                "names without '/', which separates them from classes and metrics",
                repr(name),
            )
            own = [example for example in examples if example.subtask == name]
            if name in config.task.rankings:
                TASKS["ranking"].complete(config, own)
                continue
            found = {example.label for example in own}
            where = f"training data of {name}"
            require_data(len(found) >= 2, where, "at least two different labels", "one")
            if any(isinstance(label, float) for label in found):
                targets[name] = target_of([example.label for example in own], where)
                continue
            listed = config.task.part(name).labels
            for label in found if listed else ():
                label_index(listed, label, where)
            if not listed:
                check_forms(found, where)
                check_hidden(found)
            labels += [f"{name}/{label}" for label in listed or in_order(found)]
        others = ", ".join(label for label in config.task.labels if label not in labels)
        require_data(not others, "task.labels", "NAME/CLASS of data sets with classes", others)
        config.task.labels = tuple(labels)
        if not config.task.target_means:
            config.task.target_means, config.task.target_scales = zip(
                *targets.values(), strict=True
            )
        module = config.task.answer_module
        parts = [config.task.part(name) for name in config.task.subtasks]
        require_data(
            any(part.settings(AnswerModuleConfig).answer_module == module for part in parts),
            "multitask data",
            f"a data set with two text columns and classes, which task.answer_module={module} "
            "compares",
            "none",
        )

    def read(self, examples):
        def read(part, own):
            return [
                [self._finish(unit, example.subtask) for unit in units]
                for example, units in zip(own, part.read(own), strict=True)
            ]

        return in_groups(read, examples, self._part)

    def training_units(self, examples):
        """Returns units of one example, or, with rankings, a function from the epoch to units.

        All batches have as many sequences then: `task.num_candidates` in each unit. They are the
        documents of a query, or other examples, which are joined at random in each epoch.
        """
        task, seed = self.config.task, self.config.training.seed
        parts = {
            name: part.training_units([x for x in examples if x.subtask == name])
            for name, part in self.parts.items()
        }
        if not task.settings(MultitaskConfig).rankings:
            return [self._finish(unit, name) for name in parts for unit in parts[name]]

        def units(epoch: int) -> list[Unit]:
            rng = np.random.default_rng([seed, _JOINING, epoch])
            drawn = []
            for name, of_part in parts.items():
                if callable(of_part):  # Rankings, whose label says nothing.
                    joined = [
                        Unit(x.sequences, {"label": np.zeros(len(x.sequences), np.float32)})
                        for x in of_part(epoch)
                    ]
                else:
                    joined = _joined(of_part, task.settings(MultitaskConfig).num_candidates, rng)
                drawn += [self._finish(unit, name) for unit in joined]
            return drawn

        return units

    def predict(self, example, outputs):
        own = [dict.fromkeys(_OUTPUTS, output[example.subtask]) for output in outputs]
        return {"subtask": example.subtask, **self._part(example).predict(example, own)}

    def combine(self, predictions):
        return self.parts[predictions[0]["subtask"]].combine(predictions)

    def evaluate(self, examples, predictions):
        """Computes the metrics of each data set, as `subtask/metric`, and their `mean`.

        `mean` is over the main metric of each data set.
        """
        metrics: dict[str, float | None] = {}
        main = []
        for name, part in self.parts.items():
            own = [k for k, example in enumerate(examples) if example.subtask == name]
            if own:
                of_part = part.evaluate([examples[k] for k in own], [predictions[k] for k in own])
                main.append(of_part[part.config.task.metric or part.metric])
                metrics |= {f"{name}/{metric}": value for metric, value in of_part.items()}
        keys = [f"{name}/loss" for name in self.config.task.settings(MultitaskConfig).rankings]
        if len(main) == len(keys) and metrics.keys() >= set(keys):  # Nothing but rankings.
            metrics["loss"] = _mean([metrics[key] for key in keys])
        return {"mean": _mean(main), **metrics}

    def means_over(self, examples, predictions):
        found: dict[str, str] = {}
        for name, part in self.parts.items():
            own = [k for k, example in enumerate(examples) if example.subtask == name]
            over = part.means_over([examples[k] for k in own], [predictions[k] for k in own])
            found |= {f"{name}/{metric}": classes for metric, classes in over.items() if own}
        return found

    def judge(self, example, prediction):
        return self._part(example).judge(example, prediction)

    def _part(self, example: TextExample) -> Task:
        require_data(
            example.subtask in self.parts,
            example.id,
            f"one of the data sets {', '.join(self.parts)}",
            repr(example.subtask),
        )
        return self.parts[example.subtask]

    def _finish(self, unit: Unit, subtask: str) -> Unit:
        """Makes label dtypes the same for all data sets and adds the index of the head."""
        if "label" in unit.labels:
            unit.labels["label"] = np.asarray(unit.labels["label"], np.float32)
        unit.labels["subtask"] = np.array(list(self.parts).index(subtask), np.int32)
        return unit


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; None if one of the values is undefined."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _joined(units: list[Unit], size: int, rng: np.random.Generator) -> list[Unit]:
    """Units of `size` examples in a random order; the last is filled up with padding."""
    order = rng.permutation(len(units))
    joined = []
    for start in range(0, len(units), size):
        members = [units[i] for i in order[start : start + size]]
        label = np.zeros(size, np.float32)
        label[: len(members)] = [unit.labels["label"] for unit in members]
        sequences = [unit.sequences[0] for unit in members] + [{}] * (size - len(members))
        joined.append(Unit(sequences, {"label": label}))
    return joined
