"""Inputs of fine-tuning runs: examples, a complete configuration, and what the runs start from."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from data_prep.tasks.task_data import read_task
from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import (
    complete_settings,
    given_settings,
    keep_settings,
)
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import POSITIVE, require, require_number
from official.xlnet.data.examples import Example
from official.xlnet.data.lost_rows import MAX_LOST
from official.xlnet.runtime.distribution import prepare_devices
from official.xlnet.tokenization.tokenizer import num_pieces
from official.xlnet.training.continued_head import resumes_head
from official.xlnet.training.finetuning import Start, saved_configuration

Rows = str | Iterable[Any]
_DEFAULT_SHARE = "10%"
_SHARE = re.compile(r"([0-9]{1,2}(?:\.[0-9]+)?)%")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuningOptions:
    """Options of `xlnet.finetune`, and of other functions that fine-tune.

    Attributes:
      init_from: model to start from; None: random weights.
      recipe: YAML file or model directory that the configuration was read from, if any.
      overrides: overrides of the configuration, `key=value`.
      vocab: vocabulary file, for training from random weights.
      strategy: distribution strategy, or its name; see `prepare_devices`.
      cpu_devices: number of virtual CPU devices.
      extra_train: {path of further training data: its weight in the loss}.
      max_lost: maximum fraction of bad rows to skip.
      new_head: whether to start with a new head, even if the one of `init_from` fits.
      cluster_timeout: longest wait for other workers, in seconds.
    """

    init_from: str | None
    recipe: str | None = None
    overrides: Sequence[str] = ()
    vocab: str | None = None
    strategy: str | tf.distribute.Strategy = "one_device"
    cpu_devices: int = 1
    extra_train: Mapping[str, float] | None = None
    max_lost: float = MAX_LOST
    new_head: bool = False
    cluster_timeout: float = CLUSTER_TIMEOUT


@dataclasses.dataclass
class FineTuningInputs:
    """Inputs of fine-tuning runs.

    Attributes:
      config: the configuration; missing settings are chosen, except those that
        `run_finetuning` fills in.
      train: training examples.
      dev: examples for evaluation and checkpoint selection; [] if no data is held out.
      further: examples of `extra_train`; [] if they are in `train`.
      start: initial state of the runs.
      counts: numbers of skipped rows, for the result.
    """

    config: XLNetConfig
    train: list[Example]
    dev: list[Example]
    further: list[Example]
    start: Start
    counts: dict[str, int]


def read_inputs(
    config: XLNetConfig,
    train: Rows,
    dev: Rows | None,
    output: str,
    options: FineTuningOptions,
    needs_dev: bool = True,
) -> FineTuningInputs:
    """Reads the examples of fine-tuning runs, and completes their configuration.

    Args:
      config: the configuration, see `task_configuration`; changed in place.
      train: training data, see `read_task`.
      dev: data to evaluate on, or a share of the training data to hold out, such as `20%`.
      output: model directory, whose settings are kept if it holds a run that is resumed.
      options: further options.
      needs_dev: whether examples are held out if there is no `dev`. Otherwise `dev` is None, and
        examples of `extra_train` are apart from the others, as they are never held out.

    Raises:
      ConfigError: the configuration does not match the data or the model.
      DataError: the data or the model cannot be used.
    """
    task = config.task
    if options.vocab and not options.init_from:
        config.model.fit_vocabulary(num_pieces(options.vocab), options.vocab)
    # First of all, as some readers use TensorFlow.
    strategy = prepare_devices(
        config.training, options.strategy, options.cpu_devices, options.cluster_timeout
    )
    further, further_counts = _further_examples(options.extra_train or {}, task, options.max_lost)
    train_examples, counts = _examples(train, task, "train", options.max_lost)
    label_type = task.label_type  # The type in train; dev may have its labels as strings.
    _check_groups(train_examples, task)
    dev_examples: list[Example] = []
    dev_counts: dict[str, int] = {}
    if needs_dev:
        train_examples, dev_examples, dev_counts = _split(
            train_examples, dev, config, options.max_lost
        )
        train_examples += further
        further = []
    task.label_type = label_type
    counts.update(further_counts)
    counts.update(dev_counts)
    return FineTuningInputs(
        config=config,
        train=train_examples,
        dev=dev_examples,
        further=further,
        start=_complete(config, train_examples, output, strategy, options),
        counts=counts,
    )


def _complete(
    config: XLNetConfig,
    train: Sequence[Example],
    output: str,
    strategy: tf.distribute.Strategy,
    options: FineTuningOptions,
) -> Start:
    """Chooses missing settings in place, and returns the initial state of the runs."""
    keys_from_user = given_settings(options.recipe, options.overrides)
    with_head = False
    if options.init_from and not options.new_head:
        with_head = resumes_head(config, keys_from_user, options.init_from, train)
    saved = saved_configuration(output)
    if saved is not None and saved.task.name == config.task.name:
        keep_settings(config, keys_from_user, saved)
    else:
        complete_settings(config, keys_from_user, len(train), strategy.num_replicas_in_sync)
    has_length = "num_steps" in keys_from_user
    has_warmup = "warmup_steps" in keys_from_user
    return Start(
        strategy=strategy,
        init_from=options.init_from,
        with_head=with_head,
        vocab=options.vocab,
        max_lost=options.max_lost,
        scales_warmup=has_length or not has_warmup,
    )


def _check_groups(train: Sequence[Example], task: TaskConfig) -> None:
    """Raises `ConfigError` if `task.group_column` is set and no example has a group."""
    has_groups = any(getattr(example, "group", "") for example in train)
    expected = "a column of a training table with texts or words"
    require(not task.group_column or has_groups, "task.group_column", expected, task.group_column)


def _split(
    train: list[Example], dev: Rows | None, config: XLNetConfig, max_lost: float
) -> tuple[list[Example], list[Example], dict[str, int]]:
    """Returns the training and dev examples, and counts of skipped rows of dev."""
    if dev is None:
        dev = _DEFAULT_SHARE
    share = _SHARE.fullmatch(dev) if isinstance(dev, str) else None
    if share:
        from official.xlnet.jobs.held_out import held_out

        train_part, dev_part = held_out(train, config.training.seed, float(share[1]) / 100)
        return train_part, dev_part, {}
    dev_examples, counts = _examples(dev, config.task, "dev", max_lost)
    return train, dev_examples, counts


def _further_examples(
    files: Mapping[str, float], task: TaskConfig, max_lost: float
) -> tuple[list[Example], dict[str, int]]:
    """Returns the examples of {path: weight} with their weights, and counts of skipped rows."""
    expected = "a task whose examples have weights (join the files of other tasks into one)"
    require(not files or task.weighs_examples, "extra_train", expected, task.name)
    weighted: list[Any] = []
    counts: dict[str, int] = {}
    for path, weight in files.items():
        require_number(f"extra_train: {path}", weight, POSITIVE, numbers.Real)
        examples, skipped = _examples(path, task, path, max_lost)
        changes: dict[str, Any] = {"weight": weight}
        for example in examples:
            weighted.append(dataclasses.replace(example, **changes))
        counts.update(skipped)
    return weighted, counts


def _examples(
    rows: Rows, task: TaskConfig, split: str, max_lost: float
) -> tuple[list[Example], dict[str, int]]:
    """Returns examples, and counts of skipped rows with the name of the split in front."""
    examples, counts = read_task(rows, task, max_lost, split)
    return examples, {f"{split}_{reason}": count for reason, count in counts.items()}
