"""The loop of fine-tuning: its model, evaluation, best checkpoint and early stopping."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.checkpoint_files import CheckpointWriter, SavedState
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.base import Section
from official.xlnet.configs.data import TEXT_SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import describe_settings
from official.xlnet.configs.key_marks import MAY_CHANGE
from official.xlnet.data.examples import Example
from official.xlnet.errors import require_config
from official.xlnet.inference.task_prediction import evaluate_examples
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.data_report import report_lines
from official.xlnet.tasks.task import Task, comparable
from official.xlnet.training.loop import Loop, interval_passed

RUN_DIR = "run"


class EvaluationState(tf.train.experimental.PythonState):
    """Evaluation history of a run, saved in its checkpoints.

    Attributes:
      best: the best value of the metric; None before the first evaluation.
      best_step: its step.
      worse: number of evaluations since the best one, for early stopping.
      stopped: whether the run has been stopped early.
    """

    def __init__(self):
        self.best: float | None = None
        self.best_step = 0
        self.worse = 0
        self.stopped = False

    def serialize(self):
        return json.dumps([self.best, self.best_step, self.worse, self.stopped])

    def deserialize(self, string_value):
        self.best, self.best_step, self.worse, self.stopped = json.loads(string_value)


class FineTuningLoop(Loop):
    """A fine-tuning run.

    Args:
      task: the task, with its configuration.
      batches: the training batches.
      dev: examples for evaluation and checkpoint selection.
      report: description of the examples; see `data_report`.
      output: model directory. The best model is saved there, the state of the run in `RUN_DIR`.
      strategy: distribution strategy.
      with_head: whether a new run begins with the head of a model, too.
      selects: whether the best checkpoint by metrics on `dev` is kept, rather than the last one.

    Attributes:
      evaluations: the evaluation history.
    """

    unit = "labels"

    def __init__(
        self,
        task: Task,
        batches: TrainingBatches,
        dev: Sequence[Example],
        report: dict[str, Any],
        output: str,
        strategy: tf.distribute.Strategy,
        with_head: bool = False,
        selects: bool = True,
    ):
        super().__init__(
            task.config,
            output,
            task.tokenizer.model_file,
            strategy,
            task.config.training.num_steps,
            folder=os.path.join(output, RUN_DIR),
        )
        self._task, self._batches, self._dev = task, batches, dev
        self._report, self._with_head, self._selects = report, with_head, selects
        self.evaluations = EvaluationState()
        self.parts = {"state": self.evaluations}

    def create_model(self, init_from: str | None) -> XLNetTaskModel:
        model = XLNetTaskModel(self.config)
        model.training_lengths = tuple(self._batches.lengths)
        if init_from:
            parts = {"encoder": model.encoder}
            if self._with_head:
                parts["head"] = model.head
            for loss, _ in model.auxiliary_losses:
                parts |= loss.pretrained()
            restore(init_from, **parts)
        if self.config.training.lora_rank:
            from official.xlnet.modeling.models.lora import add_lora

            add_lora(model, self.config.training.lora_rank)
        return model

    def batches(self, saved: SavedState | None) -> tf.data.Dataset:
        return self.strategy.distribute_datasets_from_function(
            lambda context: self._batches.dataset(self.step, context)
        )

    def settings_to_keep(self, saved: XLNetConfig) -> dict[str, Any]:
        return {
            "model": saved.model.as_dict(),
            "data": TEXT_SETTINGS,
            "task": _keys_to_keep(saved.task),
            "training": _keys_to_keep(saved.training),
        }

    def is_finished(self) -> bool:
        return super().is_finished() or self.evaluations.stopped

    def begin(self) -> None:
        for line in report_lines(self._report):
            self.log.log_line(line)
        num_examples = self._report["train"]["examples"]
        self.log.log_line(f"settings    {describe_settings(self.config, num_examples)}")
        # Encoder and head only: the checkpoint of a model would include the optimizer.
        model = self.state.model
        parts = tf.train.Checkpoint(encoder=model.encoder, head=model.head)
        best = tf.train.Checkpoint(model=parts)
        self._best = CheckpointWriter(best, self.output, 1, self.is_chief)

    def evaluate(self, before: int) -> bool:
        interval, last = self.config.training.checkpoint_steps, self._last_step
        is_due = self._selects and interval_passed(interval, before, self.step)
        if not is_due and self.step != last:
            return False
        _, metrics = evaluate_examples(self.model, self._task, self._dev)
        metric, state = metric_of(self._task, metrics), self.evaluations
        defined_metrics = {
            f"dev_{name}": value for name, value in metrics.items() if isinstance(value, float)
        }
        self.log.scalars(self.step, **defined_metrics)
        is_better = comparable(metric, metrics[metric]) > comparable(metric, state.best)
        if state.best is None or is_better:  # While no metric is defined, the newest is the best.
            state.best, state.best_step, state.worse = metrics[metric], self.step, 0
            with model_directory.merged_weights(self.state.model):
                self._best.save(self.step)
                self._best.wait()  # Complete before the state of the run names it as the best.
        else:
            state.worse += 1
        patience = self.config.task.patience
        self.model.stop_training = state.stopped = bool(patience and state.worse >= patience)
        shown = "  ".join(
            f"{name} {metric_text(value, metrics.get(f'{name}_is_over'))}"
            for name, value in metrics.items()
            if not isinstance(value, str)
        )
        best = f"best {metric} {metric_text(state.best)} at step {state.best_step}"
        self.log.log_line(f"step {self.step}/{last}  dev: {shown}  {best}")
        if state.stopped:
            early = f"stops early: {patience} evaluations without gain"
            self.log.log_line(f"{early} (--set=task.patience=0 runs all {last} steps)")
        return True


def _keys_to_keep(section: Section) -> list[str]:
    """The keys of a section that a resumed run may not change."""
    may_change: list[str] = []
    for settings in section.settings_in_use():
        may_change += settings.marked_keys(MAY_CHANGE)
    return [key for key in section.as_dict() if key not in may_change]


def metric_of(task: Task, metrics: dict[str, Any]) -> str:
    """Returns the name of the metric that checkpoints are compared by; see `comparable`.

    Args:
      task: the task; `task.metric` of its configuration overrides the default metric.
      metrics: metrics of an evaluation.

    Raises:
      ConfigError: the metric is unknown.
    """
    metric = task.config.task.metric or task.metric
    known = ", ".join(metrics)
    require_config(metric in metrics, "task.metric", f"one of {known}", repr(metric))
    return metric
