"""Several fine-tuned models on examples: their combined predictions, and metrics of these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from official.xlnet.configs.key_marks import OF_OUTPUTS
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.data.text_counts import check_unknown
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.inference.task_prediction import (
    evaluate_examples,
    load_task,
    packed_forward,
    predict_examples,
    require_labels,
    rows_together,
)
from official.xlnet.runtime.progress import waiting
from official.xlnet.tasks.reports import write_report
from official.xlnet.tasks.task import Prediction, Task, metrics_of


class Ensemble:
    """Fine-tuned models of one task whose predictions are combined (`Task.combine`).

    Args:
      model_dirs: model directories; one is a model as it is.

    Attributes:
      task: the task, with settings of the first model. `null_threshold` is the mean of all.
      unit: number of examples that are predicted together: predictions of examples after a multiple
        of it are the same, to the bit, without those before.

    Raises:
      ConfigError: there is no model, or the models have different tasks, or a task whose
        predictions cannot be combined.

    Example:
      >>> ensemble = Ensemble(["runs/rte/1", "runs/rte/2", "runs/rte/3"])
      >>> [prediction["label"] for prediction in ensemble.predict(examples)]
      ['entailment', 'not_entailment']
    """

    def __init__(self, model_dirs: Sequence[str]):
        require_config(bool(model_dirs), "model", "a fine-tuned model", "an empty list")
        with waiting("reading the model"):
            self._members = [load_task(model_dir) for model_dir in model_dirs]
        self.task: Task = self._members[0][1]
        tasks = [task.config.task for _, task in self._members]
        if len(tasks) > 1 and type(self.task).combine is Task.combine:
            known = [name for name in TASKS.names() if TASKS[name].combine is not Task.combine]
            raise ConfigError(
                f"task.name: expected one of {', '.join(known)} for several models, got "
                f"{tasks[0].name}"
            )
        for model_dir, task in zip(model_dirs, tasks, strict=True):
            for key in tasks[0].marked_keys(OF_OUTPUTS):
                expected, value = tasks[0].as_dict().get(key), task.as_dict().get(key)
                require_config(
                    value == expected,
                    model_dir,
                    f"task.{key} = {expected!r}, as in {model_dirs[0]}",
                    repr(value),
                )
            expected, value = tasks[0].text_columns, task.text_columns
            is_reordered = value != expected and sorted(value) == sorted(expected)
            require_config(
                not (expected and value) or (not is_reordered and len(value) == len(expected)),
                model_dir,
                f"the texts of {', '.join(expected)}, in this order, as in {model_dirs[0]}",
                f"task.text_columns = {value!r}",
            )
        self.task.average_tuned_settings(tasks)
        self.unit = math.lcm(*(rows_together(task) for _, task in self._members))
        self._forwards = [packed_forward(model) for model, _ in self._members]

    def predict(self, examples: Iterable[Example]) -> Iterator[Prediction]:
        """Yields a prediction for each example, in order, however many there are.

        Args:
          examples: the examples.
        """
        copies = itertools.tee(examples, len(self._members))
        streams = [
            predict_examples(model, task, stream, forward)
            for (model, task), stream, forward in zip(
                self._members, copies, self._forwards, strict=True
            )
        ]
        for predictions in zip(*streams, strict=True):
            yield predictions[0] if len(predictions) == 1 else self.task.combine(predictions)

    def evaluate(
        self, examples: Sequence[Example], report_dir: str | None = None
    ) -> dict[str, Any]:
        """Returns the metrics of the combined predictions on labelled examples.

        The metrics of one model include `loss`; of several, `models`, their number.

        Args:
          examples: the examples.
          report_dir: directory for predictions, metrics and a plot. None for no report.
        """
        require_labels(examples)
        metrics: dict[str, Any]
        if len(self._members) == 1:
            predictions, metrics = evaluate_examples(*self._members[0], examples, self._forwards[0])
        else:
            predictions = list(self.predict(examples))
            metrics = metrics_of(self.task, examples, predictions)
            metrics["models"] = len(self._members)
        counts = {**self.task.counts, **check_unknown(self.task.counts, "data")}
        metrics |= {"examples": len(examples), **counts}
        if baselines := self.task.baselines(examples):
            metrics["baselines"] = baselines
        if report_dir:
            write_report(report_dir, self.task, examples, predictions, metrics)
        return metrics
