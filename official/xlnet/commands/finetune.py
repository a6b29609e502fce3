"""Fine-tunes a model on a task.

--task is a kind of task (classification, multi_label, regression, multiple_choice,
question_answering, token_classification, ranking, multitask) or a data set whose files are known
(GLUE: cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; imdb, yelp2, yelp5, ag_news, dbpedia,
amazon2, amazon5; squad, race, swag, conll2003, qnli_ranking). A table has a column `label`; all
its other columns are texts, unless --set=task.text_columns=[…] says which. For multitask, --train
and --dev are NAME=FILE,NAME=FILE.

A run that was stopped continues where it was when the same command runs again.
"""

from __future__ import annotations

import sys
from typing import Any

from absl import flags

from data_prep.tasks.datasets import task_settings
from data_prep.tasks.task_data import read_task
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError
from official.xlnet.tasks.registry import TASKS
from official.xlnet.training.finetuning import finetune

FLAGS = flags.FlagValues()
_TASK = flags.DEFINE_string("task", None, "Kind of task or data set.", flag_values=FLAGS)
_TRAIN = flags.DEFINE_string("train", None, "Training data.", required=True, flag_values=FLAGS)
_DEV = flags.DEFINE_string("dev", None, "Data to evaluate on.", required=True, flag_values=FLAGS)
_INIT_FROM = flags.DEFINE_string(
    "init_from", None, "Model directory to start from.", flag_values=FLAGS
)
_VOCAB = flags.DEFINE_string(
    "vocab", None, "spiece.model, to start from random weights.", flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Directory of the fine-tuned model.", required=True, flag_values=FLAGS
)
_CONFIG = flags.DEFINE_string("config", None, "YAML file of a recipe.", flag_values=FLAGS)
_STRATEGY = flags.DEFINE_enum(
    "strategy", "one_device", ["one_device", "mirrored"], "Devices to use.", flag_values=FLAGS
)
_SET = flags.DEFINE_multi_string(
    "set", [], "key=value: overrides a key of the configuration.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns the task's figures on dev, and counts of what was cut or left out."""
    config = task_configuration(_TASK.value, _CONFIG.value, _SET.value, _INIT_FROM.value)
    train, train_counts = read_task(_TRAIN.value, config.task)
    dev, dev_counts = read_task(_DEV.value, config.task)
    counts = {f"train_{name}": number for name, number in train_counts.items()}
    counts |= {f"dev_{name}": number for name, number in dev_counts.items()}
    for name, number in counts.items():
        print(f"left out: {name} {number}", file=sys.stderr)
    figures = finetune(
        config,
        train,
        dev,
        _OUTPUT.value,
        init_from=_INIT_FROM.value,
        vocab=_VOCAB.value,
        strategy=_STRATEGY.value,
    )
    return figures | counts


def task_configuration(
    task: str | None, path: str | None, overrides: list[str], init_from: str | None
) -> XLNetConfig:
    """The configuration of a fine-tuning run.

    Each of these overrules what is before it: defaults for fine-tuning; the network and the
    cleaning of `init_from`; the settings of `task`; the file at `path`; `overrides`.
    """
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
        saved = XLNetConfig.load(init_from)
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
