"""Fine-tuning loop with evaluation, best-checkpoint selection, early stopping and resuming.

The model directory holds the best model by the task's metric. Its subfolder `run` holds the state
that an interrupted run resumes from: the latest weights, the optimizer and the evaluation history.
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
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import latest_checkpoint
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ConfigError, DataError, DivergedError, PreemptedError
from official.xlnet.files.locks import only_writer
from official.xlnet.files.paths import plain_folder
from official.xlnet.inference.task_prediction import evaluate_examples, require_labels, unit_lengths
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.runtime.allocator import release_memory
from official.xlnet.runtime.distribution import limit_threads
from official.xlnet.runtime.history import HistoryWriter
from official.xlnet.runtime.memory import require_training_memory
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
_ERRORS = ("loss", "mean_squared_error")  # Metrics for which lower is better.


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
    """Fine-tunes a model on a task and writes the checkpoint that is best on `dev`.

    The model is evaluated every `training.checkpoint_steps` steps. Training stops after
    `training.num_steps` steps or `task.epochs` epochs, or early, after `task.patience`
    evaluations without an improvement. The same call resumes an interrupted run.

    Args:
      config: the experiment configuration. Settings that follow from the data, such as
        `task.labels`, are filled in.
      train: training examples.
      dev: examples for evaluation and checkpoint selection.
      output: model directory to create, or to resume from.
      init_from: model directory to initialize the encoder from. None for random initialization.
      vocab: vocabulary file; needed only without `init_from`.
      strategy: distribution strategy, `one_device` or `mirrored`.

    Returns:
      The metrics of the task and `loss` on `dev`, `step` of the best checkpoint, `steps` in
      total, `train_examples`, and counts of truncated or skipped examples.

    Raises:
      ConfigError: the configuration is invalid or does not match the data or a model directory.
      DataError: the examples or a model directory cannot be used.
      DivergedError: the loss is not finite.
      PreemptedError: SIGTERM was received; a checkpoint was saved.
    """
    task, batches, counts = _prepare(config, train, dev, init_from, vocab)
    with only_writer(output):
        run_dir = os.path.join(output, RUN_DIR)
        latest = latest_checkpoint(run_dir)
        if latest:
            _check_resumable(config, output, task.tokenizer)
        with _distribution(strategy).scope():
            run = _create_run(config, None if latest else init_from)
        model_directory.create_model_dir(output, config, task.tokenizer.model_file)
        os.makedirs(run_dir, exist_ok=True)
        if latest:
            model_directory.restore_whole(run, latest)
        run.model.compile(run.optimizer, jit_compile=config.training.jit_compile)
        if int(run.optimizer.iterations) < config.training.num_steps and not run.state.stopped:
            with plain_folder(output) as folder:
                _fit(run, task, batches, dev, output, folder)
        model_directory.restore(output, encoder=run.model.encoder, head=run.model.head)
        predictions, _ = evaluate_examples(run.model, task, dev)
        task.finish(dev, predictions)
        config.save(output)
        predictions, metrics = evaluate_examples(run.model, task, dev)
        metrics |= {
            "step": run.state.best_step,
            "steps": int(run.optimizer.iterations),
            "train_examples": len(train),
            **counts,
        }
        write_report(output, task, dev, predictions, metrics)
        return metrics


def _prepare(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    init_from: str | None,
    vocab: str | None,
) -> tuple[Task, TrainingBatches, dict[str, int]]:
    """Validates the input, completes the configuration and creates the task and its batches.

    Returns:
      The task, the training batches, and counts of truncated or skipped examples.
    """
    if not train or not dev:
        raise DataError(
            f"expected training and dev examples, got {len(train)} for training and "
            f"{len(dev)} for dev"
        )
    require_labels(dev)
    require_training_memory(config, config.task.max_length)
    limit_threads(config.training)
    release_memory(config.training)
    kind = task_class(config.task.name)
    kind.complete(config, train)
    tf_keras.utils.set_random_seed(config.training.seed)
    tf_keras.mixed_precision.set_global_policy(config.training.precision)
    vocab = os.path.join(init_from, VOCAB_FILE) if init_from else vocab
    if vocab is None:
        raise ConfigError("expected init_from or a vocabulary file, got neither")
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


def _create_run(config: XLNetConfig, init_from: str | None) -> tf.train.Checkpoint:
    """Creates the model, its optimizer and the evaluation history of a new run."""
    model = XLNetTaskModel(config)
    if init_from:
        saved = load_config(init_from)
        model_directory.check_same(saved, config, "model", model_directory.ARCHITECTURE, init_from)
        model_directory.restore(init_from, encoder=model.encoder)
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.tuned_variables)
    return tf.train.Checkpoint(model=model, optimizer=optimizer, state=_RunState())


def _fit(
    run: tf.train.Checkpoint,
    task: Task,
    batches: TrainingBatches,
    dev: Sequence[Example],
    output: str,
    folder: str,
) -> None:
    """Trains until the last step, early stopping or SIGTERM.

    Raises:
      PreemptedError: SIGTERM was received; a checkpoint was saved.
    """
    step = int(run.optimizer.iterations)
    callback = _FineTuning(task, dev, output, run, folder)
    log = tf_keras.callbacks.TensorBoard(
        os.path.join(output, LOG_DIR), write_graph=False, update_freq=10
    )
    with callback.termination:
        run.model.fit(
            batches.dataset(step),
            steps_per_epoch=task.config.training.num_steps - step,
            verbose=0,
            callbacks=[callback, log],
        )
    if callback.termination.received:
        step = int(run.optimizer.iterations)
        raise PreemptedError(f"preempted at step {step}; checkpoint saved in {output}")


class _RunState(tf.train.experimental.PythonState):
    """Evaluation history of a run, saved in its checkpoints."""

    def __init__(self):
        self.best: float | None = None
        self.best_step = 0
        self.worse = 0  # Evaluations since the best one, for early stopping.
        self.stopped = False

    def serialize(self):
        return json.dumps([self.best, self.best_step, self.worse, self.stopped])

    def deserialize(self, string_value):
        self.best, self.best_step, self.worse, self.stopped = json.loads(string_value)


class _FineTuning(tf_keras.callbacks.Callback):
    """Keras callback of a fine-tuning run: evaluation, checkpoints, early stopping, preemption."""

    def __init__(self, task, dev, output, run: tf.train.Checkpoint, folder):
        super().__init__()
        self._task, self._dev, self._output = task, dev, output
        self._config = task.config
        self._state = run.state
        self._run = tf.train.CheckpointManager(run, os.path.join(folder, RUN_DIR), max_to_keep=1)
        # Not the model itself, which would include the optimizer.
        parts = tf.train.Checkpoint(encoder=run.model.encoder, head=run.model.head)
        self._best = tf.train.CheckpointManager(
            tf.train.Checkpoint(model=parts), folder, max_to_keep=1
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
        if not np.isfinite(logs["loss"]):
            raise DivergedError(
                f"step {step}: expected a finite loss, got {logs['loss']}; "
                "a lower training.learning_rate may help"
            )
        self._history.write(step=step, loss=float(logs["loss"]))
        is_preempted = self.termination.received  # Read once, as it may change at any moment.
        if step % training.checkpoint_steps == 0 or step == training.num_steps:
            self._evaluate(step)
        elif is_preempted:
            self._run.save(checkpoint_number=step)
            self._progress.close()
        else:
            left = self._left(batch, step)
            self._progress.show(f"step {step}/{training.num_steps}  loss {logs['loss']:.4f}{left}")
        if is_preempted:
            self.model.stop_training = True

    def on_train_end(self, logs=None):
        self._history.close()
        self._writer.close()

    def _left(self, batch: int, step: int) -> str:
        """Returns the estimated remaining time; excludes the first step, which compiles."""
        if batch == 0:
            return ""
        seconds = (time.monotonic() - self._first_step_done) / batch
        left = minutes_and_seconds(seconds * (self._config.training.num_steps - step))
        return f"  {left} left"

    def _evaluate(self, step: int) -> None:
        _, metrics = evaluate_examples(self.model, self._task, self._dev)
        metric = metric_of(self._task, metrics)
        with self._writer.as_default(step):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)
        state = self._state
        if state.best is None or metrics[metric] > state.best:
            state.best, state.best_step, state.worse = metrics[metric], step, 0
            self._best.save(checkpoint_number=step)
        else:
            state.worse += 1
        patience = self._config.task.patience
        state.stopped = bool(patience and state.worse >= patience)
        self._run.save(checkpoint_number=step)
        self.model.stop_training = state.stopped
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        self._progress.keep(
            f"step {step}/{self._config.training.num_steps}  {shown}  best {metric} "
            f"{state.best:.4f} at step {state.best_step}"
        )


def set_num_steps(config: XLNetConfig, steps_per_epoch: int) -> None:
    """Converts `task.epochs` to `training.num_steps`, keeping the fraction of warmup steps.

    Args:
      config: the experiment configuration, changed in place; unchanged if `task.epochs` is 0.
      steps_per_epoch: number of batches per epoch.
    """
    training = config.training
    if config.task.epochs:
        share = training.warmup_steps / training.num_steps
        training.num_steps = max(1, round(config.task.epochs * steps_per_epoch))
        training.warmup_steps = round(share * training.num_steps)
        config.task.epochs = 0.0


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


def _distribution(name: str) -> tf.distribute.Strategy:
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    if name == "one_device":
        num_gpus = min(1, num_gpus)
    return distribute_utils.get_distribution_strategy(name, num_gpus)


def _check_resumable(config: XLNetConfig, output: str, tokenizer: Tokenizer) -> None:
    """Raises `ConfigError` if the run in `output` cannot be resumed with `config`."""
    saved = XLNetConfig.load(output)
    for section, keys in (
        ("model", tuple(saved.model.as_dict())),
        ("task", tuple(set(saved.task.as_dict()) - {"null_threshold", "patience"})),
        ("training", ("batch_size", "seed", "num_steps", "learning_rate")),
    ):
        model_directory.check_same(saved, config, section, keys, output)
    if Tokenizer(os.path.join(output, VOCAB_FILE)).sha256 != tokenizer.sha256:
        raise ConfigError(f"vocab: expected the vocabulary of the run in {output}, got another one")
