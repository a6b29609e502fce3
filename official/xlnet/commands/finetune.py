"""Fine-tunes a model on a task.

--task is a task type (classification, multi_label, regression, multiple_choice,
question_answering, token_classification, ranking, multitask) or a supported data set (GLUE: cola,
sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; imdb, yelp2, yelp5, ag_news, dbpedia, amazon2,
amazon5; squad, race, swag, conll2003, qnli_ranking). A table needs a column `label`; all other
columns are text inputs unless --set=task.text_columns=[…] selects some. For multitask, --train and
--dev are NAME=FILE,NAME=FILE.

Running the same command again resumes an interrupted run. --runs=5 trains with five random seeds,
reports the median and spread of the metric, and keeps the best model.
"""

from __future__ import annotations

import sys
from typing import Any

from absl import flags

from data_prep.tasks.datasets import task_settings
from data_prep.tasks.task_data import read_task
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError

FLAGS = flags.FlagValues()
_TASK = flags.DEFINE_string("task", None, "Task type or data set.", flag_values=FLAGS)
_TRAIN = flags.DEFINE_string("train", None, "Training data.", required=True, flag_values=FLAGS)
_DEV = flags.DEFINE_string("dev", None, "Validation data.", required=True, flag_values=FLAGS)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "Model directory to initialize from.", flag_values=FLAGS
)
_VOCAB = flags.DEFINE_string(
    "vocab", None, "spiece.model, for training from random weights.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output model directory.", required=True, flag_values=FLAGS
)
_CONFIG = flags.DEFINE_string(
    "config", None, "Configuration: YAML file or model directory.", flag_values=FLAGS
)
_STRATEGY = flags.DEFINE_enum(
    "strategy",
    "one_device",
    ["one_device", "mirrored"],
    "Distribution strategy.",
    flag_values=FLAGS,
)
_RUNS = flags.DEFINE_integer(
    "runs",
    1,
    "Number of runs with different random seeds, of which the best model is kept.",
    lower_bound=1,
    flag_values=FLAGS,
)
_SET = flags.DEFINE_multi_string(
    "set", [], "Configuration override key=value; may be repeated.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Runs fine-tuning; returns the metrics on the validation data and counts of skipped rows."""
    config = task_configuration(_TASK.value, _CONFIG.value, _SET.value, _INIT_FROM.value)
    train, train_counts = read_task(_TRAIN.value, config.task)
    dev, dev_counts = read_task(_DEV.value, config.task)
    counts = {f"train_{name}": number for name, number in train_counts.items()}
    counts |= {f"dev_{name}": number for name, number in dev_counts.items()}
    for name, number in counts.items():
        print(f"skipped rows: {name} {number}", file=sys.stderr)
    from official.xlnet.training.finetuning import finetune
    from official.xlnet.training.repeated_finetuning import finetune_repeatedly

    start: dict[str, Any] = {
        "init_from": _INIT_FROM.value,
        "vocab": _VOCAB.value,
        "strategy": _STRATEGY.value,
    }
    output, num_runs = _OUTPUT.value, _RUNS.value
    if num_runs == 1:
        metrics = finetune(config, train, dev, output, **start)
    else:
        metrics = finetune_repeatedly(config, train, dev, output, num_runs, **start)
    return metrics | counts


def task_configuration(
    task: str | None, path: str | None, overrides: list[str], init_from: str | None
) -> XLNetConfig:
    """Builds the configuration of a fine-tuning run.

    In order of increasing precedence: defaults for fine-tuning; the `model` and `data` sections of
    `init_from`; the settings of `task`; the file at `path`; `overrides`.

    Args:
      task: task type or data set; None to take it from the configuration file.
      path: optional YAML file or model directory.
      overrides: `key=value` strings; see `XLNetConfig.load`.
      init_from: optional model directory to initialize from.

    Returns:
      The validated configuration.

    Raises:
      ConfigError: there is no task, or it contradicts the configuration.
      DataError: the task is unknown.
    """
    from official.xlnet.tasks.registry import TASKS

    base = XLNetConfig(
        training=TrainingConfig(
            batch_size=32,
            num_steps=1000,
            warmup_steps=100,
            learning_rate=3e-5,
            checkpoint_steps=100,
        )
    )
    if init_from:
        saved = load_config(init_from)
        base.model, base.data = saved.model, saved.data
    if task is None and path:
        task = XLNetConfig.load(path, overrides, base).task.name
    if not task:
        raise ConfigError(f"--task: expected one of {', '.join(TASKS)} or a data set, got none")
    settings = task_settings(task, tuple(TASKS))
    base.task = TaskConfig(**settings)
    if path is None:
        config = base
        for override in overrides:
            config.set(override)
        config.check()
    else:
        config = XLNetConfig.load(path, overrides, base)
    if config.task.name != settings["name"]:
        raise ConfigError(
            f"task.name: expected {settings['name']!r}, as --task={task} says, got "
            f"{config.task.name!r}"
        )
    return config
