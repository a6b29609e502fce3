"""Fine-tuning.

A model directory holds the best model by the task's metric. Its folder `run` holds what a run
that was stopped continues from: the newest weights, the optimizer, and how evaluations went.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from official.common import distribute_utils
from official.xlnet.checkpoints import model_directory
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ConfigError, DataError, PreemptedError
from official.xlnet.inference.task_prediction import evaluate_examples, require_labels, unit_lengths
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.runtime.allocator import release_memory
from official.xlnet.runtime.distribution import limit_threads
from official.xlnet.runtime.history import HistoryWriter
from official.xlnet.runtime.preemption import TerminationSignal
from official.xlnet.runtime.progress import Progress, minutes_and_seconds
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.registry import task_class
from official.xlnet.tasks.reports import write_report
from official.xlnet.tasks.task import Task
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.optimization import create_optimizer

RUN_DIR = "run"
LOG_DIR = "logs"
_ERRORS = ("loss", "mean_squared_error")  # Figures of which a smaller one is better.


def finetune(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    *,
    init_from: str | None = None,
    vocab: str | None = None,
    strategy: str = "one_device",
) -> dict[str, Any]:
    """Trains on examples and leaves the model that was best on `dev`.

    Training evaluates every `training.checkpoint_steps` steps and stops after
    `training.num_steps`, or `task.epochs` passes, or `task.patience` evaluations without a
    better figure. The same call continues a run that was stopped.

    Args:
      config: the configuration. What follows from the data, such as labels, is filled in.
      train: examples to learn from.
      dev: examples to choose the best checkpoint on.
      output: the model directory to make.
      init_from: a model directory whose encoder training starts from; by default random weights.
      vocab: vocabulary file where there is no `init_from`.
      strategy: `one_device` or `mirrored`.

    Returns:
      The task's figures on `dev`, `loss` there, `step` of the best checkpoint, `steps` in all
      and `train_examples`; and counts of what was cut or skipped.

    Raises:
      ConfigError, DataError: configuration, data and directories do not fit together.
      PreemptedError: SIGTERM came; the state is saved.
    """
    task, batches, counts = _prepare(config, train, dev, init_from, vocab)
    run_dir = os.path.join(output, RUN_DIR)
    latest = tf.train.latest_checkpoint(run_dir)
    if latest:
        _check_continues(config, output)
    state = _RunState()
    with _distribution(strategy).scope():
        model = XLNetTaskModel(config)
        if init_from and not latest:
            saved = XLNetConfig.load(init_from)
            model_directory.check_same(
                saved, config, "model", model_directory.ARCHITECTURE, init_from
            )
            model_directory.restore(init_from, encoder=model.encoder)
        optimizer = create_optimizer(config.training, config.model.num_layers)
        optimizer.build(model.tuned_variables)
    model_directory.create_model_dir(output, config, task.tokenizer.model_file)
    os.makedirs(run_dir, exist_ok=True)
    run = tf.train.Checkpoint(model=model, optimizer=optimizer, state=state)
    if latest:
        with model_directory.reading_checkpoint(latest):
            run.restore(latest).assert_consumed()
    model.compile(optimizer, jit_compile=config.training.jit_compile)
    step = int(optimizer.iterations)
    if step < config.training.num_steps and not state.stopped:
        callback = _FineTuning(task, dev, output, run)
        log = tf_keras.callbacks.TensorBoard(
            os.path.join(output, LOG_DIR), write_graph=False, update_freq=10
        )
        with callback.termination:
            model.fit(
                batches.dataset(step),
                steps_per_epoch=config.training.num_steps - step,
                verbose=0,
                callbacks=[callback, log],
            )
        if callback.termination.received:
            step = int(optimizer.iterations)
            raise PreemptedError(f"told to leave at step {step}, which is saved in {output}")
    model_directory.restore(output, encoder=model.encoder, head=model.head)
    predictions, _ = evaluate_examples(model, task, dev)
    task.finish(dev, predictions)
    config.save(output)
    predictions, figures = evaluate_examples(model, task, dev)
    figures |= {
        "step": state.best_step,
        "steps": int(optimizer.iterations),
        "train_examples": len(train),
        **counts,
    }
    write_report(output, task, dev, predictions, figures)
    return figures


def _prepare(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    init_from: str | None,
    vocab: str | None,
) -> tuple[Task, TrainingBatches, dict[str, int]]:
    """The task, its batches, and counts of what was cut or skipped; completes the configuration.

    Wrong labels and settings are found here, before any training.
    """
    if not train or not dev:
        raise DataError(
            f"expected examples to train and to evaluate on, got {len(train)}, {len(dev)}"
        )
    require_labels(dev)
    limit_threads(config.training)
    release_memory(config.training)
    kind = task_class(config.task.name)
    kind.complete(config, train)
    tf_keras.utils.set_random_seed(config.training.seed)
    tf_keras.mixed_precision.set_global_policy(config.training.precision)
    vocab = os.path.join(init_from, VOCAB_FILE) if init_from else vocab
    if vocab is None:
        raise ConfigError("expected a model to start from or a vocabulary")
    tokenizer = Tokenizer(vocab, config.data.lowercase, config.data.keep_accents)
    if tokenizer.vocab_size != config.model.vocab_size:
        raise ConfigError(
            f"model.vocab_size: expected {tokenizer.vocab_size}, as in the vocabulary, got "
            f"{config.model.vocab_size}"
        )
    task = kind(config, tokenizer)
    lengths = unit_lengths(config)
    training = config.training
    units = task.training_units(train)
    batches = TrainingBatches(units, lengths[-1], lengths, training.batch_size, training.seed)
    set_num_steps(config, batches.steps_per_epoch)
    config.check()
    counts = {f"train_{name}": count for name, count in task.counts.items()}
    task.counts.clear()
    for example in dev:
        task.units(example)
    counts |= {f"dev_{name}": count for name, count in task.counts.items()}
    return task, batches, counts


class _RunState(tf.train.experimental.PythonState):
    """How the evaluations of a run went; saved with its weights."""

    def __init__(self):
        self.best: float | None = None
        self.best_step = 0
        self.worse = 0  # Evaluations since the best one.
        self.stopped = False

    def serialize(self):
        return json.dumps([self.best, self.best_step, self.worse, self.stopped])

    def deserialize(self, string_value):
        self.best, self.best_step, self.worse, self.stopped = json.loads(string_value)


class _FineTuning(tf_keras.callbacks.Callback):
    """What happens between two steps: evaluation, the best checkpoint, the run's state, SIGTERM."""

    def __init__(self, task, dev, output, run: tf.train.Checkpoint):
        super().__init__()
        self._task, self._dev, self._output = task, dev, output
        self._config = task.config
        self._state = run.state
        self._run = tf.train.CheckpointManager(run, os.path.join(output, RUN_DIR), max_to_keep=1)
        # Without the optimizer, which the model has as an attribute.
        parts = tf.train.Checkpoint(encoder=run.model.encoder, head=run.model.head)
        self._best = tf.train.CheckpointManager(
            tf.train.Checkpoint(model=parts), output, max_to_keep=1
        )
        self._progress = Progress(sys.stderr)
        self.termination = TerminationSignal()

    def on_train_begin(self, logs=None):
        self._start = int(self.model.optimizer.iterations)
        self._history = HistoryWriter(self._output, self._start)
        self._writer = tf.summary.create_file_writer(os.path.join(self._output, LOG_DIR, "dev"))

    def on_train_batch_begin(self, batch, logs=None):
        self.model.loss_metric.reset_state()

    def on_train_batch_end(self, batch, logs=None):
        training = self._config.training
        step = self._start + batch + 1
        if batch == 0:
            self._first_step_done = time.monotonic()
        self._history.write(step=step, loss=float(logs["loss"]))
        if not np.isfinite(logs["loss"]):
            raise DataError(
                f"step {step}: expected a finite loss, got {logs['loss']}; "
                "a lower training.learning_rate may help"
            )
        is_told_to_leave = self.termination.received  # Read once: it may come at any moment.
        if step % training.checkpoint_steps == 0 or step == training.num_steps:
            self._evaluate(step)
        elif is_told_to_leave:
            self._run.save(checkpoint_number=step)
            self._progress.close()
        else:
            left = self._left(batch, step)
            self._progress.show(f"step {step}/{training.num_steps}  loss {logs['loss']:.4f}{left}")
        if is_told_to_leave:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._history.close()
        self._writer.close()

    def _left(self, batch: int, step: int) -> str:
        """The time left at the pace so far; of the first step, which compiles, nothing is told."""
        if batch == 0:
            return ""
        seconds = (time.monotonic() - self._first_step_done) / batch
        left = minutes_and_seconds(seconds * (self._config.training.num_steps - step))
        return f"  {left} left"

    def _evaluate(self, step: int) -> None:
        _, figures = evaluate_examples(self.model, self._task, self._dev)
        metric = metric_of(self._task, figures)
        with self._writer.as_default(step):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        state = self._state
        if state.best is None or figures[metric] > state.best:
            state.best, state.best_step, state.worse = figures[metric], step, 0
            self._best.save(checkpoint_number=step)
        else:
            state.worse += 1
        patience = self._config.task.patience
        state.stopped = bool(patience and state.worse >= patience)
        self._run.save(checkpoint_number=step)
        self.model.stop_training = state.stopped
        shown = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
        self._progress.keep(
            f"step {step}/{self._config.training.num_steps}  {shown}  best {metric} "
            f"{state.best:.4f} at step {state.best_step}"
        )


def set_num_steps(config: XLNetConfig, steps_per_epoch: int) -> None:
    """Turns `task.epochs` into steps; the warm-up keeps its share of them."""
    training = config.training
    if config.task.epochs:
        share = training.warmup_steps / training.num_steps
        training.num_steps = max(1, round(config.task.epochs * steps_per_epoch))
        training.warmup_steps = round(share * training.num_steps)
        config.task.epochs = 0.0


def metric_of(task: Task, figures: dict[str, float]) -> str:
    """The figure that checkpoints are compared by."""
    metric = task.config.task.metric or task.metric
    known = [name for name in figures if name not in _ERRORS]
    if metric not in known:
        raise ConfigError(f"task.metric: expected one of {', '.join(known)}, got {metric!r}")
    return metric


def _distribution(name: str) -> tf.distribute.Strategy:
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    if name == "one_device":
        num_gpus = min(1, num_gpus)
    return distribute_utils.get_distribution_strategy(name, num_gpus)


def _check_continues(config: XLNetConfig, output: str) -> None:
    saved = XLNetConfig.load(output)
    for section, keys in (
        ("model", tuple(saved.model.as_dict())),
        ("task", tuple(set(saved.task.as_dict()) - {"null_threshold", "patience"})),
        ("training", ("batch_size", "seed", "num_steps", "learning_rate")),
    ):
        model_directory.check_same(saved, config, section, keys, output)
