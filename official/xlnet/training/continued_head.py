"""The head of a fine-tuned model, which fine-tuning continues with where it fits."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Collection, Sequence

from absl import logging

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError


def goes_on_with_head(
    config: XLNetConfig, given: set[str], init_from: str, examples: Sequence[Example]
) -> bool:
    """Whether a run begins with the head of its model; says so, or why not. See `take_head`.

    Keys of the head are added to `given`, so that no default of a size replaces them.
    """
    reason = take_head(config, given, init_from, examples)
    if reason is None:
        given |= set(config.task.of_head)
        logging.info("the run continues with the head of %s", init_from)
    elif reason:
        logging.warning("the head starts anew: %s", reason)
    return reason is None


def take_head(
    config: XLNetConfig, given: Collection[str], init_from: str, examples: Sequence[Example]
) -> str | None:
    """Takes the settings of the head of a model, among them its labels, if the head fits.

    Args:
      config: the configuration of the run, changed in place if it fits.
      given: keys of the settings that a recipe or flag gives; see `given_settings`.
      init_from: the model, in any format.
      examples: the training examples.

    Returns:
      None if the head fits, else the reason why it does not; "" if the model has none.
    """
    task, saved = config.task, load_config(init_from).task
    if saved.name != task.name:
        return saved.name and f"the head of {init_from} is for the task {saved.name}"
    of_head = {key: getattr(saved, key) for key in saved.of_head}
    defaults = {field.name: field.default for field in dataclasses.fields(task)}
    for key, value in of_head.items():
        own = getattr(task, key)
        if own != value and (key in given or own != defaults[key]):
            return f"task.{key} is {own!r}, and of {init_from} it is {value!r}"
    merged = dataclasses.replace(task, **of_head)
    if saved.name == "regression" and not saved.target_means:  # A folder of HF or TF1.
        merged.target_means, merged.target_scales = (0.0,), (1.0,)
    try:
        trial = dataclasses.replace(config, task=copy.deepcopy(merged))
        TASKS[task.name].complete(trial, examples)
    except DataError as error:
        return str(error)
    config.task = merged
    return None
