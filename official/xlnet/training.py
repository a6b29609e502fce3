"""A pre-training run: data, model and `fit`, from where an earlier run stopped.

The run's state is in its checkpoint: weights, optimizer, memory and, as the optimizer's step
count, the position in the data. A batch, its targets, orders and dropout are functions of that
step, so a run that was killed and started again takes the steps it would have taken.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

import numpy as np
import tensorflow as tf
import tf_keras

from official.common import distribute_utils
from official.xlnet import checkpoint
from official.xlnet.config import CONFIG_FILE, ConfigError, XLNetConfig
from official.xlnet.features import VOCAB_FILE, DataError
from official.xlnet.history import HistoryWriter, read_history
from official.xlnet.input_pipeline import pretraining_dataset, reading_errors
from official.xlnet.optimization import create_optimizer
from official.xlnet.pretrainer import XLNetPretrainer

LOG_DIR = "logs"
STRATEGIES = {
    "one_device": "one_device",
    "mirrored": "mirrored",
    "multi_worker": "multi_worker_mirrored",
    "tpu": "tpu",
}
_SUMMARY_STEPS = 10
_MAX_CHECKPOINTS = 2
_LINE_SECONDS = 30  # Between two lines of progress where the output is no terminal.
_FINAL_STEPS = 100  # The loss of a run is the mean over so many of its last steps.


def pretrain(
    config: XLNetConfig,
    data_dir: str,
    model_dir: str,
    *,
    steps: int | None = None,
    minutes: float | None = None,
    init_from: str | None = None,
    strategy: str = "one_device",
) -> dict[str, float]:
    """Trains until a step or a time, and leaves a model directory that can be continued.

    Args:
      config: the configuration. That of a run to be continued may differ from the earlier one
        in `training` only, and there not in `batch_size`.
      data_dir: a data set of `xlnet prepare`.
      model_dir: where the model is, or is to be.
      steps: the step to stop at, counted from the start of the first run; `training.num_steps`
        by default. The learning rate goes by `training.num_steps` in any case.
      minutes: stop after so much time, if that is earlier.
      init_from: a model directory to take the first weights from.
      strategy: one of `STRATEGIES`.

    Returns:
      step: the step that was reached.
      loss: mean over the last 100 steps, in nats per target.
      tokens_per_second: of this run, without its first step.

    Raises:
      ConfigError, DataError: configuration, data and directories do not fit together.
    """
    steps = config.training.num_steps if steps is None else steps
    distribution = _distribution(strategy)
    tf_keras.mixed_precision.set_global_policy(config.training.precision)
    tf_keras.utils.set_random_seed(config.training.seed)
    # Opened first: wrong data leaves no half-made model directory behind.
    vocab = os.path.join(init_from or data_dir, VOCAB_FILE)
    pretraining_dataset(data_dir, config.training.batch_size, config=config, vocab=vocab)
    latest = tf.train.latest_checkpoint(model_dir)
    if latest is None:
        checkpoint.create_model_dir(model_dir, config, vocab)
    else:
        _check_continues(config, model_dir)
        config.save(model_dir)

    with distribution.scope():
        if init_from and latest is None:
            model = checkpoint.load_pretrainer(init_from, config)
        else:
            model = XLNetPretrainer(config)
        optimizer = create_optimizer(config.training, config.model.num_layers)
        optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(
        state, model_dir, max_to_keep=_MAX_CHECKPOINTS, step_counter=optimizer.iterations
    )
    if latest is not None:
        with checkpoint.reading_checkpoint(latest):
            state.restore(latest).assert_consumed()
    start_step = int(optimizer.iterations)
    model.compile(
        optimizer,
        jit_compile=config.training.jit_compile,
        steps_per_execution=config.training.steps_per_execution,
    )

    run = _Run(config, model_dir, manager, start_step, steps, minutes)
    if start_step < steps:
        with reading_errors(data_dir, "train"):
            data = distribution.distribute_datasets_from_function(
                lambda context: pretraining_dataset(
                    data_dir,
                    config.training.batch_size,
                    config=config,
                    start_step=start_step,
                    input_context=context,
                    vocab=os.path.join(model_dir, VOCAB_FILE),
                )
            )
            model.fit(data, steps_per_epoch=steps - start_step, verbose=0, callbacks=[run])
    losses = [line["loss"] for line in read_history(model_dir)]
    return {
        "step": int(optimizer.iterations),
        "loss": float(np.mean(losses[-_FINAL_STEPS:])),
        "tokens_per_second": run.tokens_per_second,
    }


class _Run(tf_keras.callbacks.Callback):
    """What happens between two steps: records, TensorBoard, checkpoints, progress, the clock."""

    def __init__(
        self,
        config: XLNetConfig,
        model_dir: str,
        manager: tf.train.CheckpointManager,
        start_step: int,
        last_step: int,
        minutes: float | None,
    ):
        super().__init__()
        self._config = config
        self._model_dir = model_dir
        self._manager = manager
        self._start_step = start_step
        self._last_step = last_step
        self._deadline = None if minutes is None else time.monotonic() + 60 * minutes
        self._progress = _Progress(sys.stderr)
        self._first = (0, 0.0)  # Step and time at the end of the first execution.
        self.tokens_per_second = 0.0

    def on_train_begin(self, logs=None):
        self._history = HistoryWriter(self._model_dir, self._start_step)
        self._writer = tf.summary.create_file_writer(os.path.join(self._model_dir, LOG_DIR))
        self._saved_step = self._start_step

    def on_train_batch_begin(self, batch, logs=None):
        self.model.loss_metric.reset_state()

    def on_train_batch_end(self, batch, logs=None):
        step = self._start_step + batch + 1
        loss = float(logs["loss"])
        now = time.monotonic()
        if not self._first[0]:
            self._first = step, now
        else:
            training = self._config.training
            tokens = (step - self._first[0]) * training.batch_size * self._config.data.seq_len
            self.tokens_per_second = tokens / (now - self._first[1])
        self._history.write(step=step, loss=loss)
        if step % _SUMMARY_STEPS < self._config.training.steps_per_execution:
            self._summarize(step, loss)
        if step - self._saved_step >= self._config.training.checkpoint_steps:
            self._save(step)
        if self._deadline is not None and now >= self._deadline:
            self.model.stop_training = True
        self._report(step, loss, now)

    def on_train_end(self, logs=None):
        step = int(self.model.optimizer.iterations)
        if step > self._saved_step:
            self._save(step)
        self._writer.close()
        self._history.close()
        self._progress.close()

    def _summarize(self, step: int, loss: float) -> None:
        with self._writer.as_default(step):
            tf.summary.scalar("loss", loss)
            tf.summary.scalar("perplexity", np.exp(loss))
            tf.summary.scalar("learning_rate", self.model.optimizer.learning_rate)
            tf.summary.scalar("tokens_per_second", self.tokens_per_second)

    def _save(self, step: int) -> None:
        self._manager.save(checkpoint_number=step)
        self._writer.flush()
        self._saved_step = step

    def _report(self, step: int, loss: float, now: float) -> None:
        first_step, first_time = self._first
        seconds = np.inf
        if step > first_step:
            seconds = (self._last_step - step) * (now - first_time) / (step - first_step)
        if self._deadline is not None:
            seconds = min(seconds, max(0.0, self._deadline - now))
        left = "" if np.isinf(seconds) else f"  {_minutes_and_seconds(seconds)} left"
        self._progress.show(
            f"step {step}/{self._last_step}  loss {loss:.3f}  "
            f"{self.tokens_per_second:.0f} tokens/s{left}",
            is_last=step == self._last_step,
        )


class _Progress:
    """One line that is rewritten on a terminal, and a line now and then elsewhere."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown = -np.inf

    def show(self, text: str, is_last: bool) -> None:
        """Shows a text unless one was shown just now."""
        now = time.monotonic()
        if not is_last and now - self._shown < (0.2 if self._is_terminal else _LINE_SECONDS):
            return
        self._shown = now
        self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def close(self) -> None:
        """Ends the line."""
        if self._is_terminal:
            self._stream.write("\n")


def _distribution(name: str) -> tf.distribute.Strategy:
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {name!r}")
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    if name == "one_device":
        num_gpus = min(1, num_gpus)
    return distribute_utils.get_distribution_strategy(STRATEGIES[name], num_gpus, tpu_address="")


def _check_continues(config: XLNetConfig, model_dir: str) -> None:
    """Raises `ConfigError` where a run with `config` would not be the one in `model_dir`."""
    if not os.path.exists(os.path.join(model_dir, CONFIG_FILE)):
        raise DataError(f"{model_dir} holds a checkpoint but no {CONFIG_FILE}: no model directory")
    saved = XLNetConfig.load(model_dir)
    for section, keys in (
        ("model", tuple(saved.model.as_dict())),
        ("data", tuple(saved.data.as_dict())),
        ("training", ("batch_size", "seed")),
    ):
        checkpoint.check_same(saved, config, section, keys, model_dir)


def _minutes_and_seconds(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
