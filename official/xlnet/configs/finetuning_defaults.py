"""Settings of fine-tuning that follow from the size of the model and the number of examples.

They apply where neither the recipe nor a flag gives a value:

* Learning rate: 3e-5 · (118 M / P)^0.95 for an encoder of P parameters, at most 3e-3, with one
  significant digit. This is 3e-5 for XLNet-Base and 1e-5 for XLNet-Large, for which table 8 of
  the paper has 1e-5 to 3e-5, and 3e-3 for `configs/tiny.yaml`, the best of a sweep
  (`benchmarks.learning.untuned`). The exponent joins these three points. With
  `training.lora_rank`, ten times as much, at most 3e-3.
* Epochs: as many as present 16,000 examples, from 3 to 40. Small data sets need many epochs until
  a new head is trained; more than 5,000 examples are read three times, as in the paper's recipes.
* Batch size: 32, and 16 with fewer than 1,000 examples, for enough updates.
* Warm-up: the first tenth of the steps.
* Evaluation and checkpoint: six times, and at most 1,000 steps apart.
* Early stopping: after three evaluations without gain; of more than six, after half of them. A
  length or an interval that is given is kept, without early stopping.
* Sequence summary: the mean over tokens below 10 M parameters; the state of CLS is not a good
  summary in a network that small and briefly pre-trained.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Sequence

from absl import logging

from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig, recipe_path
from official.xlnet.configs.key_marks import FROM_DATA, OF_PRETRAINING
from official.xlnet.configs.registry import DEFAULT_TASK, task_settings
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.configs.validation import require
from official.xlnet.files.yaml_files import read_yaml

_BASE_RATE, _BASE_PARAMETERS, _EXPONENT, _MAX_RATE = 3e-5, 118e6, 0.95, 3e-3
_EXAMPLES_SEEN = 16_000
_MIN_EPOCHS, _MAX_EPOCHS = 3, 40
_FEW_EXAMPLES = 1000
_WARMUP_SHARE = 0.1
_MEAN_SUMMARY_PARAMETERS = 10e6
_EVALUATIONS, _MAX_CHECKPOINT_STEPS = 6, 1000
_PATIENCE_SHARE = 0.5  # Of the evaluations.

# Settings that are chosen if they are not given; no other section has a key of these names.
_LENGTH = {"epochs": "task", "num_steps": "training", "warmup_steps": "training"}
_CHOSEN = {
    "learning_rate": "training",
    "batch_size": "training",
    **_LENGTH,
    "checkpoint_steps": "training",
    "patience": "task",
    "summary": "task",
}


def default_learning_rate(num_parameters: int, with_lora: bool = False) -> float:
    """Returns the learning rate for an encoder of a size, with one significant digit.

    Args:
      num_parameters: number of parameters of the encoder.
      with_lora: whether adapters are trained, by ten times the rate.

    Example:
      >>> default_learning_rate(117_000_000), default_learning_rate(2_100_000)
      (3e-05, 0.001)
    """
    rate = _BASE_RATE * (_BASE_PARAMETERS / num_parameters) ** _EXPONENT * 10**with_lora
    return float(f"{min(rate, _MAX_RATE):.1g}")


def default_epochs(num_examples: int) -> int:
    """Returns the number of epochs for a number of training examples.

    Args:
      num_examples: number of training examples, at least 1.

    Example:
      >>> default_epochs(100), default_epochs(2_000), default_epochs(400_000)
      (40, 8, 3)
    """
    return min(max(round(_EXAMPLES_SEEN / num_examples), _MIN_EPOCHS), _MAX_EPOCHS)


def default_batch_size(num_examples: int, multiple: int = 1) -> int:
    """Returns the batch size for a number of training examples.

    Args:
      num_examples: number of training examples.
      multiple: number of equal shares of a batch, e.g. replicas; the batch size is a multiple.

    Example:
      >>> default_batch_size(500), default_batch_size(5000, multiple=3)
      (16, 33)
    """
    size = 16 if num_examples < _FEW_EXAMPLES else 32
    return math.ceil(size / multiple) * multiple


def given_settings(path: str | None, overrides: Sequence[str]) -> set[str]:
    """Returns the keys that a recipe and overrides give, without their sections.

    Args:
      path: a YAML file or a folder of a model, as `XLNetConfig.load` has accepted it; or None.
      overrides: `key=value` strings; see `XLNetConfig.load`.

    Example:
      >>> sorted(given_settings(None, ["task.epochs=3", "learning_rate=1e-4"]))
      ['epochs', 'learning_rate']
    """
    keys = {override.partition("=")[0].rpartition(".")[2] for override in overrides}
    path = recipe_path(path or "")
    if os.path.isdir(path):
        path = os.path.join(path, CONFIG_FILE)
    if os.path.isfile(path):
        for section in (read_yaml(path) or {}).values():
            keys.update(section)
    return keys


def complete_settings(
    config: XLNetConfig,
    keys_from_user: Collection[str],
    num_examples: int,
    num_replicas: int = 1,
) -> None:
    """Chooses missing settings.

    The length of the run is chosen unless epochs, steps or warm-up are given.

    Args:
      config: the experiment configuration, changed in place.
      keys_from_user: keys of the settings that a recipe or flag gives; see `given_settings`.
      num_examples: number of training examples.
      num_replicas: number of replicas that share a batch.
    """
    training, task = config.training, config.task
    num_parameters = config.model.num_parameters
    num_examples = max(num_examples, 1)
    if "learning_rate" not in keys_from_user:
        with_lora = training.lora_rank > 0
        training.learning_rate = default_learning_rate(num_parameters, with_lora)
    if "batch_size" not in keys_from_user:
        num_shares = num_replicas * training.num_slices
        training.batch_size = default_batch_size(num_examples, num_shares)
    if "summary" not in keys_from_user and num_parameters < _MEAN_SUMMARY_PARAMETERS:
        task.summary = "mean"
    if not _LENGTH.keys() & set(keys_from_user):
        task.epochs = float(default_epochs(num_examples))
    steps_per_epoch = math.ceil(num_examples / training.batch_size)
    if "warmup_steps" not in keys_from_user:  # With epochs, its share of `num_steps` is kept.
        training.warmup_steps = round(_WARMUP_SHARE * training.num_steps)
    elif task.epochs and "num_steps" not in keys_from_user:
        training.num_steps = max(round(task.epochs * steps_per_epoch), training.warmup_steps)
    if "checkpoint_steps" not in keys_from_user:
        num_steps = math.ceil(task.epochs * steps_per_epoch) or training.num_steps
        interval = min(math.ceil(num_steps / _EVALUATIONS), _MAX_CHECKPOINT_STEPS)
        training.checkpoint_steps = interval
        if not {*_LENGTH, "patience"} & set(keys_from_user):
            num_evaluations = max(math.ceil(num_steps / interval), _EVALUATIONS)
            task.patience = math.ceil(_PATIENCE_SHARE * num_evaluations)


def keep_settings(config: XLNetConfig, keys_from_user: Collection[str], saved: XLNetConfig) -> None:
    """Takes missing settings from a resumed run.

    So a run that began with the defaults of another version, or with fewer examples, continues as
    it was.

    Args:
      config: the experiment configuration, changed in place.
      keys_from_user: keys of the settings that a recipe or flag gives; see `given_settings`.
      saved: the configuration of the run.
    """
    section_of_key = dict(_CHOSEN)
    for key in saved.task.values_of_new_runs():
        section_of_key[key] = "task"
    if {"epochs", "warmup_steps"} <= set(keys_from_user):
        del section_of_key["num_steps"]  # The warm-up is a share of these steps.
    for key, section in section_of_key.items():
        if key not in keys_from_user:
            saved_value = getattr(getattr(saved, section), key)
            setattr(getattr(config, section), key, saved_value)


def describe_settings(config: XLNetConfig, num_examples: int) -> str:
    """Returns a one-line summary of a run's settings.

    Args:
      config: the experiment configuration.
      num_examples: number of training examples.

    Example:
      >>> describe_settings(config, num_examples=6920)
      'learning rate 3e-3 for a model of 0.9 M parameters; 3 epochs of 6,920 examples in batches of
      32, warm-up 10%'
    """
    training, epochs = config.training, config.task.epochs
    mantissa, exponent = f"{training.learning_rate:.1e}".split("e")
    rate = f"{float(mantissa):g}e{int(exponent)}"
    millions = config.model.num_parameters / 1e6
    length = f"{epochs:g} epochs" if epochs else f"{training.num_steps:,} steps"
    warmup = training.warmup_steps / training.num_steps
    line = (
        f"learning rate {rate} for a model of {millions:.1f} M parameters; "
        f"{length} of {num_examples:,} examples in batches of {training.batch_size}, "
        f"warm-up {warmup:.0%}"
    )
    if config.task.patience:
        line += f", stops after {config.task.patience} evaluations without gain"
    return line


def finetuning_configuration(
    task: str | None,
    path: str | None,
    overrides: Sequence[str],
    init_from: str | None,
    load: Callable[..., XLNetConfig],
) -> XLNetConfig:
    """Builds the configuration of a fine-tuning run.

    In order of increasing precedence: defaults for fine-tuning; the `model`, `data` and `objective`
    sections of `init_from`; the settings of `task`; the file at `path`; `overrides`.

    Args:
      task: task type or data set; None for that of the configuration file, or classification.
      path: optional YAML file or model directory.
      overrides: `key=value` strings; see `XLNetConfig.load`.
      init_from: optional model to initialize from, in any format.
      load: reads a configuration, as `load_config`.

    Returns:
      The validated configuration.

    Raises:
      ConfigError: the task contradicts the configuration.
      DataError: the task is unknown.
    """
    base = XLNetConfig(
        training=TrainingConfig(
            batch_size=32,
            num_steps=1000,
            warmup_steps=0,
            learning_rate=3e-5,
            checkpoint_steps=100,
        )
    )
    if init_from:
        saved = load(init_from)
        # The objective too: the inputs of a language model beside a task follow from it.
        base.model, base.data, base.objective = saved.model, saved.data, saved.objective
    path = recipe_path(path) if path else None
    if task is None and path:
        task = load(path, list(overrides), base).task.name
    settings = task_settings(task or DEFAULT_TASK)
    base.task = TaskConfig.create(**settings)
    base.task = base.task.updated(base.task.values_of_new_runs(), "")
    if base.model.longest_input is not None:
        base.task.max_length = min(base.task.max_length, base.model.longest_input)
    if path is None:
        config = base
        config.apply(overrides)
    else:
        config = load(path, list(overrides), base)
        if os.path.isdir(path) and not any("target_" in override for override in overrides):
            for key in set(config.task.marked_keys(FROM_DATA)) - {"text_columns"}:
                setattr(config.task, key, ())  # They followed from the data of that model.
    _refuse_unused_keys(config, path, overrides)
    require(
        config.task.name == settings["name"],
        "task.name",
        f"{settings['name']!r}, as task={task} says",
        config.task.name,
    )
    return config


def _refuse_unused_keys(config: XLNetConfig, path: str | None, overrides: Sequence[str]) -> None:
    """Raises `ConfigError` if an override sets a key that only pre-training reads.

    A recipe may be of both kinds of training; its keys are a warning.
    """
    training = config.training
    why = "as only pre-training reads it"
    for key, default in training.unused_keys(
        OF_PRETRAINING, given_settings(None, overrides)
    ).items():
        expected = f"{default!r}, {why}"
        require(False, f"training.{key}", expected, getattr(training, key))
    if path and not os.path.isdir(path):
        for key in training.unused_keys(OF_PRETRAINING, given_settings(path, [])):
            logging.warning("%s: training.%s has no effect, %s", path, key, why)
