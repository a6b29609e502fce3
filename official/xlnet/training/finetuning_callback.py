"""Fine-tuning callback: logging, evaluation, best checkpoint, early stopping and preemption."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.checkpoints.checkpoint_files import CheckpointWriter
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ConfigError, DivergedError
from official.xlnet.inference.task_prediction import evaluate_examples
from official.xlnet.runtime.distribution import is_chief, on_any_worker
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.runtime.progress import interval_passed, minutes_and_seconds
from official.xlnet.tasks.task import Task
from official.xlnet.training.overflow import OverflowDetector

RUN_DIR = "run"
_SUMMARY_STEPS = 10  # Steps between two TensorBoard summaries.
_ERRORS = ("loss", "mean_squared_error")  # Metrics for which lower is better.


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


class FineTuningCallback(tf_keras.callbacks.Callback):
    """Keras callback of a fine-tuning run.

    All workers evaluate and decide alike; only the chief writes.

    Args:
      task: the task, with its configuration.
      dev: examples for evaluation and checkpoint selection.
      output: model directory. The best model is saved there, the state of the run in `RUN_DIR`.
      run: the `model`, `optimizer` and `state` (`EvaluationState`) of the run.
      termination: signal handler that records SIGTERM.

    Attributes:
      preempted: whether the run stopped because of SIGTERM.
      steps_without_labels: number of steps without any label, and so without loss and update.
    """

    def __init__(
        self,
        task: Task,
        dev: Sequence[Example],
        output: str,
        run: tf.train.Checkpoint,
        termination: TerminationSignal,
    ):
        super().__init__()
        self._task, self._dev, self._output = task, dev, output
        self._config: XLNetConfig = task.config
        self._state = run.state
        self._strategy = run.model.distribute_strategy
        self._termination = termination
        chief = is_chief(self._strategy)
        run_dir = os.path.join(output, RUN_DIR)
        if chief:
            os.makedirs(run_dir, exist_ok=True)
        self._run = CheckpointWriter(run, run_dir, 1, chief)
        # Not the model itself, which would include the optimizer.
        parts = tf.train.Checkpoint(encoder=run.model.encoder, head=run.model.head)
        self._best = CheckpointWriter(tf.train.Checkpoint(model=parts), output, 1, chief)
        self.preempted = False
        self.steps_without_labels = 0

    def on_train_begin(self, logs=None):
        self._start = self._step = int(self.model.optimizer.iterations.numpy())
        self._overflows = OverflowDetector(self.model)
        self._log = RunLog(
            self._output, self._start, self._config.training.json_log, is_chief(self._strategy)
        )

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        training, loss = self._config.training, float(logs["loss"])
        before, step = self._step, self._start + batch + 1
        self._step = step
        if before == self._start:
            self._first_done = step, time.monotonic()
        if not logs["targets"]:
            self.steps_without_labels += step - before
        elif not np.isfinite(loss):
            raise DivergedError(
                f"step {step}: expected a finite loss, got {loss}; "
                "a lower training.learning_rate may help"
            )
        else:
            self._log.history(step, loss)
        if self._overflows.overflowed():
            self._log.event("overflow", step=step, loss_scale=self._overflows.loss_scale)
        if interval_passed(_SUMMARY_STEPS, before, step):
            rate = float(tf.convert_to_tensor(self.model.optimizer.learning_rate))
            losses = {"loss": loss} if logs["targets"] else {}
            self._log.scalars(step, **losses, learning_rate=rate)
        self.preempted = on_any_worker(self._strategy, self._termination.received)
        if interval_passed(training.checkpoint_steps, before, step) or step == training.num_steps:
            self._evaluate(step)
        elif self.preempted:
            self._run.save(step)
        else:
            shown = f"loss {loss:.4f}" if logs["targets"] else "no labels"
            shown = f"step {step}/{training.num_steps}  {shown}{self._left(step)}"
            self._log.progress(shown, is_last=False)
        if self.preempted:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._run.wait()
        self._log.close()

    def _left(self, step: int) -> str:
        """Returns the estimated remaining time; excludes the first execution, which compiles."""
        first_step, first_time = self._first_done
        if step == first_step:
            return ""
        seconds = (time.monotonic() - first_time) / (step - first_step)
        left = minutes_and_seconds(seconds * (self._config.training.num_steps - step))
        return f"  {left} left"

    def _evaluate(self, step: int) -> None:
        _, metrics = evaluate_examples(self.model, self._task, self._dev)
        metric = metric_of(self._task, metrics)
        self._log.scalars(step, **{f"dev_{name}": value for name, value in metrics.items()})
        state = self._state
        if state.best is None or metrics[metric] > state.best:
            state.best, state.best_step, state.worse = metrics[metric], step, 0
            self._best.save(step)
            self._best.wait()  # Complete before the state of the run names it as the best.
        else:
            state.worse += 1
        patience = self._config.task.patience
        state.stopped = bool(patience and state.worse >= patience)
        self._run.save(step)
        self.model.stop_training = state.stopped
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self._log.keep(
            f"step {step}/{self._config.training.num_steps}  {shown}  best {metric} "
            f"{state.best:.4f} at step {state.best_step}"
        )


def metric_of(task: Task, metrics: dict[str, float]) -> str:
    """Returns the name of the metric that checkpoints are compared by; higher is better.

    Args:
      task: the task; `task.metric` of its configuration overrides the default metric.
      metrics: metrics of an evaluation.

    Raises:
      ConfigError: the metric is unknown, or lower values of it are better.
    """
    metric = task.config.task.metric or task.metric
    known = [name for name in metrics if name not in _ERRORS]
    if metric not in known:
        raise ConfigError(f"task.metric: expected one of {', '.join(known)}, got {metric!r}")
    return metric
