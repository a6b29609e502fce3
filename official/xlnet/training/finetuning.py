"""Fine-tuning: a configuration and examples in, a model directory and its metrics out.

The model directory holds the best model by the task's metric. Its subfolder `run` holds the state
that an interrupted run resumes from: the latest weights, the optimizer and the evaluation history.
"""

from __future__ import annotations

import collections
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints import model_directory
from official.xlnet.checkpoints.any_format import weights_checksum
from official.xlnet.checkpoints.checkpoint_files import newest_checkpoint, recorded_steps
from official.xlnet.checkpoints.restoring import restore
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import RUN_FILES, TASKS
from official.xlnet.configs.validation import require_one_of
from official.xlnet.data.examples import Example, examples_checksum
from official.xlnet.data.lost_rows import MAX_LOST, check_lost
from official.xlnet.data.text_counts import check_unknown
from official.xlnet.errors import ConfigError
from official.xlnet.files.json_files import write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.inference.task_prediction import (
    evaluate_examples,
    packed_forward,
    require_labels,
    unit_lengths,
)
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.data_report import DATA_FILE, data_report
from official.xlnet.tasks.reports import write_report
from official.xlnet.tasks.task import UNUSABLE, Task, complete_task, require_metric
from official.xlnet.tokenization.sentencepiece_proto import warn_of_export
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.training.finetuning_loop import RUN_DIR, FineTuningLoop


@dataclasses.dataclass(frozen=True)
class Start:
    """Initial state of fine-tuning runs.

    Attributes:
      strategy: distribution strategy; see `prepare_devices`. A run may be resumed with another
        number of replicas.
      init_from: model directory to initialize the encoder from. None for random initialization.
      with_head: whether the head of `init_from` is taken, too; see `take_head`.
      vocab: vocabulary file; needed only without `init_from`.
      max_lost: largest share of training examples that cannot be trained on.
      scales_warmup: whether `training.warmup_steps` is a share of `training.num_steps` where
        `task.epochs` gives the length of the run; otherwise it is a number of steps.
      selects: whether the checkpoint, and the settings of `Task.tune_settings`, are selected by
        metrics on `dev`; otherwise the last checkpoint is kept, and only this one is evaluated.
    """

    strategy: tf.distribute.Strategy
    init_from: str | None = None
    with_head: bool = False
    vocab: str | None = None
    max_lost: float = MAX_LOST
    scales_warmup: bool = True
    selects: bool = True


def run_finetuning(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    start: Start,
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
      start: what the run starts from.

    Returns:
      The metrics of the task and `loss` on `dev`, `step` of the best checkpoint, `steps` in
      total, `train_examples`, and counts of truncated or skipped examples.

    Raises:
      ConfigError: the configuration is invalid or does not match the data or a model directory.
      DataError: the examples or a model directory cannot be used.
      DivergedError: the loss is not finite.
      PreemptedError: SIGTERM was received; a checkpoint was saved.
      KeyboardInterrupt: SIGINT was received (Ctrl-C, Stop in a notebook); a checkpoint was saved.
    """
    replicas = start.strategy.num_replicas_in_sync
    inputs = inputs_of(train, dev, start.init_from)
    if recorded_steps(os.path.join(output, RUN_DIR)):
        # In the order in which the run knows them.
        config.task.labels = config.task.labels or XLNetConfig.load(output).task.labels
    prepared = _prepare(config, train, dev, start)
    task, counts = prepared.task, prepared.counts
    config.training.require_shares(replicas)
    report = data_report(task, train, dev, prepared.uncut_lengths, counts)
    loop = FineTuningLoop(
        task,
        prepared.batches,
        dev,
        report,
        output,
        start.strategy,
        with_head=start.with_head,
        selects=start.selects,
    )
    with only_writer(output, loop.is_chief), loop.workers.lost_worker_errors():
        loop.train(inputs, start.init_from)
        model = loop.state.model
        if config.training.lora_rank:
            from official.xlnet.modeling.models.lora import merge_lora

            merge_lora(model)
        loop.workers.require_agreement(lambda: {"best checkpoint": newest_checkpoint(output)})
        restore(output, encoder=model.encoder, head=model.head)
        # One device computes as `evaluate` does, to the last digit; replicas share the work.
        is_alone = replicas == 1 and not isinstance(start.strategy, tf.distribute.TPUStrategy)
        forward = packed_forward(model) if is_alone else None
        is_tuned_on_dev = type(task).tune_settings is not Task.tune_settings
        if start.selects and is_tuned_on_dev:
            predictions, _ = evaluate_examples(model, task, dev, forward)
            task.tune_settings(dev, predictions)
        predictions, metrics = evaluate_examples(model, task, dev, forward)
        metrics["step"] = loop.evaluations.best_step
        metrics["steps"] = loop.step
        metrics["train_examples"] = len(train)
        metrics.update(counts)
        if loop.steps_without:
            metrics["steps_without_labels"] = loop.steps_without
        if loop.is_chief:
            config.save(output)
            write_json(os.path.join(output, DATA_FILE), report)
            write_report(output, task, dev, predictions, metrics)
        return metrics


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """Task and data of a run.

    Attributes:
      task: the task, with a complete configuration.
      batches: the training batches.
      uncut_lengths: numbers of tokens of the training inputs before they are cut.
      counts: counts of truncated or skipped examples.
    """

    task: Task
    batches: TrainingBatches
    uncut_lengths: list[int]
    counts: dict[str, float]


def _prepare(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    start: Start,
) -> _Prepared:
    """Validates the input, completes the configuration and creates the task and its batches."""
    require_labels(dev)
    task_class = TASKS[config.task.name]
    if config.task.metric:
        require_metric(task_class, config.task.metric, "task.metric")
    if not task_class.reads_long_texts:
        where = f"task.long_texts of {config.task.name}"
        require_one_of(where, config.task.long_texts, ("truncate",))
    complete_task(task_class, config, train)
    tokenizer = _tokenizer(config, start)
    if start.init_from:
        model_directory.check_compatible(config, start.init_from)
    warn_of_export(tokenizer.model_proto)
    task = task_class(config, tokenizer)
    lengths = unit_lengths(config)
    training = config.training
    units = task.training_units(train)
    batches = TrainingBatches(
        units,
        lengths[-1],
        lengths,
        training.batch_size,
        training.seed,
        shortest=config.task.shortest_input,
    )
    uncut_lengths = list(task.lengths.elements()) or batches.unit_lengths
    set_num_steps(config, batches.steps_per_epoch, start.scales_warmup)
    config.check()
    lost = {name: task.counts[name] for name in UNUSABLE}
    check_lost("training data", lost, len(train), start.max_lost, unit="examples")
    counts = _take_counts("train", task)
    collections.deque(task.units(dev), maxlen=0)  # To count what happens to the examples.
    counts.update(_take_counts("dev", task))
    return _Prepared(task, batches, uncut_lengths, counts)


def _tokenizer(config: XLNetConfig, start: Start) -> Tokenizer:
    """Creates the tokenizer of a run, and sets the size of its vocabulary in the configuration."""
    vocab = os.path.join(start.init_from, VOCAB_FILE) if start.init_from else start.vocab
    if vocab is None:
        raise ConfigError(
            "init_from: expected a model to start from, such as hf://xlnet/xlnet-base-cased, or "
            "for random weights a vocabulary (vocab), got neither"
        )
    tokenizer = Tokenizer(vocab, config.data.lowercase, config.data.keep_accents)
    config.model.fit_vocabulary(tokenizer.vocab_size, vocab)
    return tokenizer


def saved_configuration(output: str) -> XLNetConfig | None:
    """Returns the configuration that a run, or several, in a directory began with.

    None if there is no run in the directory, or one that was stopped before its first checkpoint:
    it begins anew.

    Args:
      output: the directory.
    """
    for name in RUN_FILES.names():
        path = os.path.join(output, name)
        if os.path.exists(path):
            return RUN_FILES[name](path)
    for directory in (os.path.join(output, RUN_DIR), output):
        if recorded_steps(directory):
            return XLNetConfig.load(output)
    return None


def inputs_of(
    train: Sequence[Example], dev: Sequence[Example], init_from: str | None
) -> dict[str, str | None]:
    """Returns the checksums of the inputs of a run, for `check_inputs`; see `run_finetuning`."""
    return {
        "training examples": examples_checksum(train),
        "validation examples": examples_checksum(dev),
        "initial weights": weights_checksum(init_from),
    }


def _take_counts(split: str, task: Task) -> dict[str, float]:
    """Returns and resets the counts of a task, with the name of a split in front.

    Raises:
      DataError: too many tokens are unknown.
    """
    unknown = check_unknown(task.counts, f"{split} data", task.config.data.max_unknown)
    counts: dict[str, float] = {**task.counts, **unknown}
    task.counts.clear()
    return {f"{split}_{name}": count for name, count in counts.items()}


def set_num_steps(config: XLNetConfig, steps_per_epoch: int, scales_warmup: bool = True) -> None:
    """Converts `task.epochs` to `training.num_steps`.

    Args:
      config: the experiment configuration, changed in place; unchanged if `task.epochs` is 0.
      steps_per_epoch: number of batches per epoch.
      scales_warmup: whether the share of warmup steps is kept, rather than their number.
    """
    training = config.training
    if config.task.epochs:
        share = training.warmup_steps / training.num_steps
        training.num_steps = max(1, round(config.task.epochs * steps_per_epoch))
        if scales_warmup:
            training.warmup_steps = round(share * training.num_steps)
        config.task.epochs = 0.0
