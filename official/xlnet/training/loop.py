"""One loop for all training: a run that is resumed at any step, with its log and checkpoints.

A checkpoint holds the whole state of a run. Batches, targets and dropout are functions of the step,
so a run that is killed and restarted takes the same steps as one that is not.
"""

from __future__ import annotations

import collections
import math
import signal
import time
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from official.xlnet import __version__
from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import (
    CheckpointWriter,
    SavedState,
    newest_checkpoint,
)
from official.xlnet.checkpoints.run_directory import (
    require_no_other_model,
    require_same_run,
    warn_of_changes,
)
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import PreemptedError, StoppedError
from official.xlnet.files.locks import require_in_place
from official.xlnet.files.schema import conform
from official.xlnet.modeling.kernels.product_type import advice_on_products, matmul_precision
from official.xlnet.modeling.models.trainable_model import TrainableModel
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.runtime.distribution import compiles_step, is_chief
from official.xlnet.runtime.metrics_log import NoLog, RunLog
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.runtime.progress import minutes_and_seconds, waiting
from official.xlnet.runtime.run_inputs import check_inputs
from official.xlnet.runtime.workers import workers_of
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.optimization import create_optimizer
from official.xlnet.training.run_end import recorded_end

_SUMMARY_STEPS = 10  # Steps between two TensorBoard summaries; the last step has one, too.
_RECENT = 100  # Recent executions, used to estimate speed and remaining time.


class Loop(keras.callbacks.Callback):
    """A training run: resumes, trains, logs, saves checkpoints and stops.

    A subclass is a kind of training: it creates the model and its batches, and says which settings
    a resumed run has to keep. It may evaluate, and add to logs and checkpoints. All workers
    evaluate and decide alike; only the chief writes.

    Args:
      config: the experiment configuration.
      output: model directory to create, or to resume from.
      vocab: vocabulary file of the model.
      strategy: distribution strategy.
      last_step: step to stop at.
      minutes: time limit in minutes, checked after every execution; None for no limit.
      folder: directory of the checkpoints that the run is resumed from; None: `output`.
      num_kept: number of most recent checkpoints to keep.

    Attributes:
      workers: the worker processes of the run.
      state: what a checkpoint holds: `model`, `optimizer` and the `parts` of a subclass.
      step: the last step that has been taken.
      start: the last step before this call.
      resumed: what is stored with the checkpoint that this call resumes from; see `record`.
      num_bad_steps: consecutive steps with a non-finite loss or gradient; kept in checkpoints, so
        that a run that is killed again and again stops after too many, too.
      steps_without: number of steps of this call without any target or label, and so without loss
        and update.
      steps_per_second: speed over the recent executions, excluding the first one, which compiles.
    """

    unit = "targets"  # Items that a loss is the mean over.

    def __init__(
        self,
        config: XLNetConfig,
        output: str,
        vocab: str,
        strategy: tf.distribute.Strategy,
        last_step: int,
        minutes: float | None = None,
        folder: str | None = None,
        num_kept: int = 1,
    ):
        super().__init__()
        self.parts: dict[str, Any] = {}
        self.config, self.output, self.strategy = config, output, strategy
        self.workers = workers_of(strategy)
        self.is_chief = is_chief(strategy)
        self._vocab = vocab
        self._last_step = last_step
        self._minutes = minutes
        self._folder = output if folder is None else folder
        self._num_kept = num_kept
        # (step, time in seconds) at the end of each recent execution.
        self._recent: collections.deque[tuple[int, float]] = collections.deque(maxlen=_RECENT + 1)
        self.steps_per_second, self.steps_without, self._preempted = 0.0, 0, False
        self._resume({})

    # Methods that a subclass must define.

    def create_model(self, init_from: str | None) -> TrainableModel:
        """Creates the model, with random weights or the weights of another model."""
        raise NotImplementedError

    def batches(self, saved: SavedState | None) -> tf.data.Dataset:
        """Returns the batches after `step`, distributed over the replicas."""
        raise NotImplementedError

    def settings_to_keep(self, saved: XLNetConfig) -> dict[str, Iterable[str]]:
        """{section: keys} that must have the same values as in the run that is resumed."""
        raise NotImplementedError

    # Methods that a subclass may override.

    def is_finished(self) -> bool:
        """Whether all steps have been run."""
        return self.step >= self._last_step

    def begin(self) -> None:
        """Called before the first step; `log` is open."""

    def accept(self, before: int, metrics: dict[str, float]) -> None:
        """Called after steps `before` + 1 … `step` with finite metrics."""

    def diagnose(self, before: int) -> dict[str, Any]:
        """Returns why steps `before` + 1 … `step` were bad, as JSON; see `report_bad_step`."""
        return {}

    def scalars(self, metrics: dict[str, float]) -> dict[str, float]:
        """Returns the scalars of a step for TensorBoard."""
        rate = float(tf.convert_to_tensor(self.state.optimizer.learning_rate))
        return {"loss": metrics["loss"], "learning_rate": rate}

    def describe(self, metrics: dict[str, float]) -> str:
        """Returns the text of the progress line for a step."""
        return f"loss {metrics['loss']:.4f}" if metrics["targets"] else f"no {self.unit}"

    def evaluate(self, before: int) -> bool:
        """Evaluates if it is due after steps `before` + 1 … `step`; returns whether to save."""
        return False

    def evaluated_on(self) -> Any:
        """Returns JSON of what evaluations depend on besides inputs; the same on all workers."""
        return None

    def record(self) -> dict[str, Any]:
        """Returns JSON to be stored with a checkpoint, for `resumed` of the next call."""
        return {"bad_steps": self.num_bad_steps}

    # The run.

    def train(self, inputs: Mapping[str, str | None], init_from: str | None) -> None:
        """Runs the remaining training steps, from the newest checkpoint or from the first step.

        Args:
          inputs: checksums of what the run is made from; see `check_inputs`.
          init_from: model that provides the initial weights; None for random weights.

        Raises:
          ConfigError: the run in `output` has other inputs or settings.
          DataError: the run in `output` cannot be read.
          PreemptedError: SIGTERM was received; a checkpoint was saved.
          StoppedError: the same for SIGINT, a `KeyboardInterrupt`.
          DivergedError: the loss or gradient norm is not finite.
        """
        saved, training = newest_checkpoint(self._folder), self.config.training
        self.workers.require_agreement(
            lambda: {
                "version": __version__,
                "Keras": f"{keras.__name__} {keras.__version__}",
                "configuration": self.config.as_dict(),
                **inputs,
                "vocabulary": Tokenizer(self._vocab).sha256,
                "last step and time": [self._last_step, self._minutes],
                "checkpoint to resume from": saved and saved.record,
                "held-out data and best loss": self.evaluated_on(),
            },
        )
        if saved is None:
            require_no_other_model(self.output, inputs)
        check_inputs(self.output, inputs, saved is not None, self.is_chief)
        if saved is not None:
            before = load_config(self.output)
            keys = self.settings_to_keep(before)
            require_same_run(self.output, before, self.config, self._vocab, keys)
        keras.utils.set_random_seed(training.seed)
        with waiting("reading the model"), self.strategy.scope():
            model = self.create_model(init_from if saved is None else None)
            optimizer = create_optimizer(training, self.config.model.num_layers)
            optimizer.build(model.trainable_variables)
        self.state = tf.train.Checkpoint(model=model, optimizer=optimizer, **self.parts)
        if saved is not None:
            model_directory.restore_run(saved.prefix, self.state)
        model.compile(
            optimizer,
            jit_compile=compiles_step(training.jit_compile, self.strategy),
            steps_per_execution=training.steps_per_execution,
        )
        model.checks_data = False
        self.step = self.start = self._saved_step = int(optimizer.iterations.numpy())
        if self.is_finished():
            if self.is_chief:
                warn_of_changes(self.output, self.config, self.step, self._last_step)
            return  # Its configuration still describes the steps that were run.
        changes = {} if saved is None else self.config.changed_values(load_config(self.output))
        if self.is_chief:
            model_directory.create_model_dir(self.output, self.config, self._vocab)
        end = recorded_end(self.output, lambda: self.step, self.is_chief)
        with end, self.workers.lost_worker_errors():
            data = self._begin_steps(saved, changes)
            termination = TerminationSignal()
            with matmul_precision(training.products), termination as self._termination:
                steps = self._last_step - self.step
                self.set_model(model)
                model.fit(data, steps_per_epoch=steps, verbose=0, callbacks=[self._hooks()])
                self.workers.wait()  # A scheduler may end all others with the first.
            self._require_all_steps()

    def _begin_steps(
        self, saved: SavedState | None, changes: Mapping[str, tuple[Any, Any]]
    ) -> tf.data.Dataset:
        """Opens the log, with settings that have changed, and the checkpoints; returns batches."""
        training = self.config.training
        self._resume({} if saved is None else saved.record)
        data = self.batches(saved)
        log = RunLog(self.output, self.step, training.json_log) if self.is_chief else NoLog()
        self.log: Any = log
        self._writer = CheckpointWriter(self.state, self._folder, self._num_kept, self.is_chief)
        self._loss_scale = self._read_loss_scale()
        self.log.changed_settings(self.step, changes)
        if advice := advice_on_products(training.products):
            self.log.log_line(advice)
        self.begin()
        minutes = math.inf if self._minutes is None else self._minutes
        self._deadline = time.monotonic() + 60 * minutes
        return data

    def _resume(self, record: Mapping[str, Any]) -> None:
        self.resumed = record
        where = f"{self._folder}: bad_steps of the newest checkpoint"
        self.num_bad_steps = conform(record.get("bad_steps", 0), int, where)

    def _require_all_steps(self) -> None:
        """Raises an error that says so if a signal has ended the run."""
        how = f"at step {self.step}; checkpoint saved in {self.output}"
        if self._termination.received == signal.SIGINT:
            raise StoppedError(f"interrupted {how}; the same call resumes")
        if self._preempted:
            raise PreemptedError(f"preempted {how}")

    # Callbacks of Keras.

    def _hooks(self) -> keras.callbacks.Callback:
        """Returns these callbacks as a `LambdaCallback`.

        Keras would warn that this callback is slow compared with a step, but not of its own ones.
        """
        return keras.callbacks.LambdaCallback(
            on_train_end=self.on_train_end,
            on_train_batch_begin=self.on_train_batch_begin,
            on_train_batch_end=self.on_train_batch_end,
        )

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        # Keras 3 counts the last execution as complete, even if the run ends within it.
        before, step = self.step, min(self.start + batch + 1, self._last_step)
        metrics = {name: float(value) for name, value in logs.items()}
        now = time.monotonic()
        self.step = step
        self._recent.append((step, now))
        first_step, first_time = self._recent[0]
        if now > first_time:
            self.steps_per_second = (step - first_step) / (now - first_time)
        if not metrics["targets"]:
            self._count_without(step - before)
        elif self._is_good(before, metrics):
            self.num_bad_steps = 0
            self.log.history(step, metrics["loss"])
            self.accept(before, metrics)
            if interval_passed(_SUMMARY_STEPS, before, step) or self.is_finished():
                self.log.scalars(step, **self.scalars(metrics))
        shown = f"step {step}/{self._last_step}  {self.describe(metrics)}{self._time_left(now)}"
        self.log.show(shown, step / self._last_step)
        is_due = step - self._saved_step >= self.config.training.checkpoint_steps
        if self.evaluate(before) or is_due:
            self._save()
        received = bool(self._termination.received)
        if self.workers.any(received or now >= self._deadline):
            self._preempted = self.workers.any(received)
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        if self.step > self._saved_step:
            self._save()
        self._writer.wait()
        self.log.close()

    def _is_good(self, before: int, metrics: dict[str, float]) -> bool:
        """Whether loss and gradient norm are finite; reports a step that is skipped.

        Dynamic loss scaling halves its scale after a step whose scaled gradients overflowed, and
        only then. At a scale of 1, the lowest, non-finite gradients are not due to scaling.
        """
        scale, self._loss_scale = self._loss_scale, self._read_loss_scale()
        if math.isfinite(metrics["loss"]):
            if self._loss_scale < scale:
                self.log.event("overflow", step=self.step, loss_scale=self._loss_scale)
                return False
            if math.isfinite(metrics["gradient_norm"]):
                return True
        self.num_bad_steps += 1
        from official.xlnet.training.bad_steps import report_bad_step

        report_bad_step(
            self.log,
            self.step,
            metrics,
            self.diagnose(before),
            num_consecutive=self.num_bad_steps,
            skip=self.config.training.on_bad_step == "skip",
        )
        return False

    def _read_loss_scale(self) -> float:
        model = self.state.model
        return float(model.optimizer.loss_scale) if model.has_loss_scale else 1.0

    def _count_without(self, steps: int) -> None:
        if not self.steps_without:
            advice = "they have no loss and change no weight (docs/symptoms.md)"
            self.log.event(f"steps without {self.unit}", first_step=self.step, meaning=advice)
        self.steps_without += steps

    def _time_left(self, now: float) -> str:
        seconds = self._deadline - now
        if self.steps_per_second:
            seconds = min(seconds, (self._last_step - self.step) / self.steps_per_second)
        return "" if math.isinf(seconds) else f"  {minutes_and_seconds(max(0.0, seconds))} left"

    def _save(self) -> None:
        require_in_place(self.output)
        self.log.flush()  # A checkpoint in a bucket has the logs up to it, see `mirror`.
        self._writer.save(self.step, **self.record())
        self._saved_step = self.step


def interval_passed(interval: int, before: int, step: int) -> bool:
    """Returns whether a multiple of `interval` lies in (before, step].

    Example:
      >>> interval_passed(10, before=18, step=21)
      True
    """
    return step // interval > before // interval
