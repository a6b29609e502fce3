"""Multi-task fine-tuning: one shared encoder, a head for each data set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import TextExample
from official.xlnet.errors import require_data
from official.xlnet.projects.multitask.settings import MultitaskConfig
from official.xlnet.tasks.batching import Unit
from official.xlnet.tasks.labels import check_forms, check_hidden, in_order, label_index
from official.xlnet.tasks.number_labels import target_of
from official.xlnet.tasks.settings import AnswerModuleConfig
from official.xlnet.tasks.task import Prediction, Task, in_groups, register_task

# Random stream of the examples that form a unit; rankings use [seed, 1, epoch].
_JOINING = 2


@register_task("multitask")
class MultiTask(Task):
    """Joint training of text classification, regression and ranking on several data sets.

    Each batch comes from one data set. Every example is seen once per epoch, so data sets are
    sampled in proportion to their sizes. `task.labels` lists classes as `subtask/class`. A data
    set with numeric labels, which has no classes there, is a regression; `task.rankings` are
    ranked.
    """

    metric = "mean"
    majority_name = "majority class or mean label"
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
        self.parts = {}
        for name in config.task.subtasks:
            part_config = XLNetConfig.from_dict({}, base=config)
            part_config.task = config.task.part(name)
            self.parts[name] = TASKS[part_config.task.name](part_config, tokenizer)

    @classmethod
    def complete_settings(cls, config, examples):
        labels: list[str] = []
        targets = dict.fromkeys(config.task.subtasks, (0.0, 1.0))
        for name in config.task.subtasks:
            require_data(
                bool(name) and "/" not in name,
                "multitask data",
                "names without '/', which separates them from classes and metrics",
                repr(name),
            )
            part_examples = [example for example in examples if example.subtask == name]
            if name in config.task.rankings:
                TASKS["ranking"].complete_settings(config, part_examples)
                continue
            where = f"training data of {name}"
            part_labels = {example.label for example in part_examples}
            require_data(len(part_labels) >= 2, where, "at least two different labels", "one")
            if any(isinstance(label, float) for label in part_labels):
                targets[name] = target_of([example.label for example in part_examples], where)
                continue
            classes = config.task.part(name).labels
            if classes:
                for label in part_labels:
                    label_index(classes, label, where)
            else:
                check_forms(part_labels, where)
                check_hidden(part_labels)
                classes = in_order(part_labels)
            labels += [f"{name}/{label}" for label in classes]
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
        def read_part(part, part_examples):
            units_of_examples = []
            for example, units in zip(part_examples, part.read(part_examples), strict=True):
                units_of_examples.append([self._with_head(unit, example.subtask) for unit in units])
            return units_of_examples

        return in_groups(read_part, examples, self._part)

    def training_units(self, examples):
        """Returns units of one example, or, with rankings, a function from the epoch to units.

        All batches have as many sequences then: `task.num_candidates` in each unit. They are the
        documents of a query, or other examples, which are joined at random in each epoch.
        """
        settings = self.config.task.settings(MultitaskConfig)
        seed = self.config.training.seed
        units_of_parts = {}
        for name, part in self.parts.items():
            part_examples = [example for example in examples if example.subtask == name]
            units_of_parts[name] = part.training_units(part_examples)
        if not settings.rankings:
            units = []
            for name, part_units in units_of_parts.items():
                units += [self._with_head(unit, name) for unit in part_units]
            return units

        def units_of_epoch(epoch: int) -> list[Unit]:
            rng = np.random.default_rng([seed, _JOINING, epoch])
            units = []
            for name, part_units in units_of_parts.items():
                if callable(part_units):
                    joined = [_without_label(unit) for unit in part_units(epoch)]
                else:
                    joined = _joined(part_units, settings.num_candidates, rng)
                units += [self._with_head(unit, name) for unit in joined]
            return units

        return units_of_epoch

    def predict(self, example, outputs):
        head_outputs = []
        for unit_outputs in outputs:
            output = unit_outputs[example.subtask]
            head_outputs.append({"logits": output, "score": output})
        prediction = self._part(example).predict(example, head_outputs)
        return {"subtask": example.subtask, **prediction}

    def combine(self, predictions):
        return self.parts[predictions[0]["subtask"]].combine(predictions)

    def evaluate(self, examples, predictions):
        """Computes the metrics of each data set, as `subtask/metric`, and their `mean`.

        `mean` is over the main metric of each data set that has examples; see `means_over`.
        """
        metrics: dict[str, float | None] = {}
        main = []
        for name, part in self.parts.items():
            part_examples, part_predictions = _of_part(name, examples, predictions)
            if part_examples:
                part_metrics = part.evaluate(part_examples, part_predictions)
                main.append(part_metrics[part.config.task.metric or part.metric])
                for metric, value in part_metrics.items():
                    metrics[f"{name}/{metric}"] = value
        rankings = self.config.task.settings(MultitaskConfig).rankings
        losses = [f"{name}/loss" for name in rankings]
        has_only_rankings = len(main) == len(losses) and metrics.keys() >= set(losses)
        if has_only_rankings:
            metrics["loss"] = _mean([metrics[key] for key in losses])
        return {"mean": _mean(main), **metrics}

    def means_over(self, examples, predictions):
        classes_of_means: dict[str, str] = {}
        present = {example.subtask for example in examples}
        if present != {*self.parts}:
            classes_of_means["mean"] = ", ".join(name for name in self.parts if name in present)
        for name, part in self.parts.items():
            part_examples, part_predictions = _of_part(name, examples, predictions)
            if part_examples:
                part_means = part.means_over(part_examples, part_predictions)
                for metric, classes in part_means.items():
                    classes_of_means[f"{name}/{metric}"] = classes
        return classes_of_means

    def error_and_probability(self, example, prediction):
        return self._part(example).error_and_probability(example, prediction)

    def _part(self, example: TextExample) -> Task:
        require_data(
            example.subtask in self.parts,
            example.id,
            f"one of the data sets {', '.join(self.parts)}",
            repr(example.subtask),
        )
        return self.parts[example.subtask]

    def _with_head(self, unit: Unit, subtask: str) -> Unit:
        """Adds the index of the head, and makes label dtypes the same for all data sets."""
        if "label" in unit.labels:
            unit.labels["label"] = np.asarray(unit.labels["label"], np.float32)
        unit.labels["subtask"] = np.array(list(self.parts).index(subtask), np.int32)
        return unit


def _of_part(
    subtask: str, examples: Sequence[TextExample], predictions: Sequence[Prediction]
) -> tuple[list[TextExample], list[Prediction]]:
    """Returns the examples of a data set, and their predictions."""
    indices = [index for index, example in enumerate(examples) if example.subtask == subtask]
    return [examples[index] for index in indices], [predictions[index] for index in indices]


def _without_label(unit: Unit) -> Unit:
    """Returns the unit of a ranking with labels of zeros, which its loss does not read."""
    return Unit(unit.sequences, {"label": np.zeros(len(unit.sequences), np.float32)})


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
