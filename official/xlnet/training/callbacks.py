"""Pre-training callback: logging, held-out evaluation, checkpoints, time limit and preemption."""

from __future__ import annotations

import collections
import math
import time

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.checkpoints.checkpoint_files import CheckpointWriter, best_heldout_loss
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.pretraining_dataset import reading_errors
from official.xlnet.errors import DataError
from official.xlnet.runtime.distribution import is_chief, on_any_worker
from official.xlnet.runtime.metrics_log import RunLog
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.runtime.progress import interval_passed, minutes_and_seconds
from official.xlnet.training.divergence import Watch
from official.xlnet.training.run_data import RunData
from official.xlnet.training.unigram_baseline import UnigramBaseline

_SUMMARY_STEPS = 10  # Steps between two TensorBoard summaries.
_RECENT = 100  # Recent executions, used to estimate speed and remaining time.


class RunCallback(tf_keras.callbacks.Callback):
    """Keras callback of a pre-training run: logs, evaluates, saves checkpoints and stops the run.

    Args:
      config: the experiment configuration.
      model_dir: model directory that logs are written to.
      data: the training and held-out data.
      writer: writes checkpoints of the training state.
      termination: signal handler that records SIGTERM.
      last_step: step to stop at.
      minutes: time limit in minutes, checked after every execution; None for no limit.

    Attributes:
      tokens_per_second: throughput over the recent executions, excluding the first one, which
        compiles.
      preempted: whether the run stopped because of SIGTERM.
      steps_without_targets: number of steps that had no target, and so no loss and no update.
    """

    def __init__(
        self,
        config: XLNetConfig,
        model_dir: str,
        data: RunData,
        writer: CheckpointWriter,
        termination: TerminationSignal,
        last_step: int,
        minutes: float | None,
    ):
        super().__init__()
        self._training = config.training
        self._step_tokens = config.training.batch_size * config.data.seq_len
        self._model_dir = model_dir
        self._data = data
        self._writer = writer
        self._termination = termination
        self._last_step = last_step
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._baseline = UnigramBaseline(
            data.records, config.model.vocab_size, config.training.warmup_steps, last_step
        )
        # (step, time in seconds) at the end of each recent execution.
        self._recent: collections.deque[tuple[int, float]] = collections.deque(maxlen=_RECENT + 1)
        self._step = self._saved_step = data.start_step
        self._best_loss = best_heldout_loss(model_dir)
        self.tokens_per_second = 0.0
        self.preempted = False
        self.steps_without_targets = 0

    def on_train_begin(self, logs=None):
        self._strategy = self.model.distribute_strategy
        start_step = self._data.start_step
        chief = is_chief(self._strategy)
        self._log = RunLog(self._model_dir, start_step, self._training.json_log, chief)
        self._watch = Watch(
            self.model,
            self._data.schedule,
            self._data.lanes.num_lanes,
            self._data.lanes.windows_per_lane,
            self._data.batch,
            self._log,
            start_step,
            skip=self._training.on_bad_step == "skip",
        )

    def on_train_batch_begin(self, batch, logs=None):
        self.model.reset_metrics()

    def on_train_batch_end(self, batch, logs=None):
        before, step = self._step, self._data.start_step + batch + 1
        self._step = step
        metrics = {name: float(value) for name, value in logs.items()}
        now = time.monotonic()
        self._recent.append((step, now))
        first_step, first_time = self._recent[0]
        if step > first_step:
            tokens = (step - first_step) * self._step_tokens
            self.tokens_per_second = tokens / (now - first_time)
        if not metrics["targets"]:
            self._count_without_targets(step, step - before)
        elif self._watch.see(before + 1, step, metrics["loss"], metrics["gradient_norm"]):
            self._log.history(step, metrics["loss"])
            self._compare(before, step, metrics["loss"])
            if interval_passed(_SUMMARY_STEPS, before, step):
                self._log_scalars(step, metrics)
        self._save_if_due(before, step)
        self._stop_if_due(now)
        self._report(step, metrics["loss"], now)

    def _count_without_targets(self, step: int, steps: int) -> None:
        if not self.steps_without_targets:
            advice = "they have no loss and change no weight (docs/symptoms.md)"
            self._log.event("steps without targets", first_step=step, meaning=advice)
        self.steps_without_targets += steps

    def on_train_end(self, logs=None):
        if self._step > self._saved_step:
            self._save(self._step)
        self._writer.wait()
        self._log.close()

    def _compare(self, before: int, step: int, loss: float) -> None:
        recent = self._baseline.not_beaten(before, step, loss)
        if recent is not None:
            self._log.event(
                "no better than the unigram baseline (docs/symptoms.md)",
                step=step,
                loss=round(recent, 4),
                unigram_loss=round(self._baseline.loss, 4),
            )

    def _log_scalars(self, step: int, metrics: dict[str, float]) -> None:
        # A mean over no labels at all, of an auxiliary objective, is not a number.
        metrics = {name: value for name, value in metrics.items() if not math.isnan(value)}
        if self.model.has_loss_scale:
            metrics["loss_scale"] = float(self.model.optimizer.loss_scale)
        self._log.scalars(
            step,
            perplexity=perplexity(metrics["loss"]),
            learning_rate=float(tf.convert_to_tensor(self.model.optimizer.learning_rate)),
            tokens_per_second=self.tokens_per_second,
            **metrics,
        )

    def _save_if_due(self, before: int, step: int) -> None:
        heldout_loss = None
        interval = self._training.evaluation_steps
        if interval and interval_passed(interval, before, step):
            data, num_batches = self._data.heldout()
            with reading_errors(self._data.records.path, "heldout"):
                result = self.model.evaluate(data, steps=num_batches, verbose=0, return_dict=True)
            heldout_loss = float(result["loss"])
            if math.isnan(heldout_loss):
                raise DataError(
                    f"{self._data.records.path}, split heldout: expected windows with targets, or "
                    "training.evaluation_steps=0, got none with a target"
                )
            self._log.scalars(
                step, heldout_loss=heldout_loss, heldout_perplexity=perplexity(heldout_loss)
            )
        is_best = heldout_loss is not None and heldout_loss < self._best_loss
        if is_best or step - self._saved_step >= self._training.checkpoint_steps:
            self._save(step, heldout_loss)
        if heldout_loss is not None:
            self._best_loss = min(self._best_loss, heldout_loss)

    def _save(self, step: int, heldout_loss: float | None = None) -> None:
        self._writer.save(step, heldout_loss=heldout_loss, **self._data.record(step))
        self._log.flush()
        self._saved_step = step

    def _stop_if_due(self, now: float) -> None:
        is_late = self._deadline is not None and now >= self._deadline
        if on_any_worker(self._strategy, is_late or self._termination.received):
            self.preempted = on_any_worker(self._strategy, self._termination.received)
            self.model.stop_training = True

    def _report(self, step: int, loss: float, now: float) -> None:
        seconds = np.inf
        if self.tokens_per_second:
            seconds = (self._last_step - step) * self._step_tokens / self.tokens_per_second
        if self._deadline is not None:
            seconds = min(seconds, max(0.0, self._deadline - now))
        left = "" if np.isinf(seconds) else f"  {minutes_and_seconds(seconds)} left"
        shown = "no targets" if math.isnan(loss) else f"loss {loss:.3f}"
        self._log.progress(
            f"step {step}/{self._last_step}  {shown} (unigrams {self._baseline.loss:.3f})  "
            f"{self.tokens_per_second:.0f} tokens/s{left}",
            is_last=step == self._last_step,
        )
