"""The head of a fine-tuned model, which fine-tuning continues with where it fits."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any

from absl import logging

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.key_marks import OF_HEAD
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError
from official.xlnet.tasks.task import complete_task


def resumes_head(
    config: XLNetConfig, user_keys: set[str], init_from: str, examples: Sequence[Example]
) -> bool:
    """Whether a run begins with the head of its model; says so, or why not. See `take_head`.

    Keys of the head are added to `user_keys`, so that no default of a size replaces them.
    """
    reason = take_head(config, user_keys, init_from, examples)
    if reason is None:
        for settings in config.task.settings_in_use():
            user_keys.update(settings.marked_keys(OF_HEAD))
        logging.info("the run continues with the head of %s", init_from)
    elif reason:
        logging.warning("the head starts anew: %s", reason)
    return reason is None


def take_head(
    config: XLNetConfig, user_keys: Collection[str], init_from: str, examples: Sequence[Example]
) -> str | None:
    """Takes the settings of the head of a model, among them its labels, if the head fits.

    Args:
      config: the configuration of the run, changed in place if it fits.
      user_keys: keys of the settings that a recipe or flag gives; see `given_settings`.
      init_from: the model, in any format.
      examples: the training examples.

    Returns:
      None if the head fits, else the reason why it does not; "" if the model has none.
    """
    task = config.task
    saved_task = load_config(init_from).task
    if not saved_task.name:
        return ""
    if saved_task.name != task.name:
        return f"the head of {init_from} is for the task {saved_task.name}"
    head: dict[str, Any] = {}
    for saved_settings in saved_task.settings_in_use():
        settings_class = type(saved_settings)
        for key in settings_class.marked_keys(OF_HEAD):
            value = getattr(task.settings(settings_class), key)
            saved_value = getattr(saved_settings, key)
            is_set = key in user_keys or value != getattr(settings_class, key)
            if is_set and value != saved_value:
                return f"task.{key} is {value!r}, and of {init_from} it is {saved_value!r}"
            head[key] = saved_value
    task_class = TASKS[task.name]
    if task_class.predicts_numbers and not head["target_means"]:  # A folder of HF or TF1.
        head["target_means"] = (0.0,)
        head["target_scales"] = (1.0,)
    merged = task.updated(head, "")
    try:
        trial = dataclasses.replace(config, task=copy.deepcopy(merged))
        complete_task(task_class, trial, examples)
    except DataError as error:
        return str(error)
    config.task = merged
    return None
