"""Checks of a command's arguments before TensorFlow is imported, which takes seconds.

They read settings, tables of names and `config.yaml` only. The functions of the verbs check the
same, and what needs more: models of other formats, files in buckets and the data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from official.xlnet.commands.declarations import Parameter
from official.xlnet.configs.experiment import (
    CONFIG_FILE,
    XLNetConfig,
    recipe_path,
    require_model,
)
from official.xlnet.configs.finetuning_defaults import finetuning_configuration
from official.xlnet.configs.registry import task_settings
from official.xlnet.errors import require_config
from official.xlnet.files import file_system


class _NotReadHereError(Exception):
    """A configuration that only the verb itself reads."""


def check_arguments(
    verb: str, parameters: Mapping[str, Parameter], values: Mapping[str, Any]
) -> None:
    """Raises an error for arguments that a verb would refuse after it has imported TensorFlow.

    Args:
      verb: the verb.
      parameters: its parameters, by name.
      values: the arguments of the call.

    Raises:
      ConfigError: an argument, setting or model is not what the verb takes.
      DataError: a task is unknown.
    """
    values = {name: parameters[name].checked(value) for name, value in values.items()}
    for path in () if values.get("follow") else _models(values):
        _require_local(path)
    if values.get("task"):
        task_settings(values["task"])
    try:
        _CHECKS.get(verb, _keys)(values)
    except _NotReadHereError:
        _keys(values)


def _models(values: Mapping[str, Any]) -> Iterator[str]:
    """The paths of models among the arguments."""
    for value in map(values.get, ("model", "init_from", "source")):
        yield from [value] if isinstance(value, str) else value or ()


def _require_local(path: str) -> None:
    """Raises `ConfigError` if there is nothing at a path on this machine."""
    if not file_system.is_remote(path):
        require_model(path)


def _keys(values: Mapping[str, Any]) -> None:
    """The names and types of keys."""
    for override in values.get("set", ()):
        XLNetConfig().set(override)


def _configuration(values: Mapping[str, Any]) -> None:
    _load(recipe_path(values.get("config") or values["source"]), values.get("set", ()))


def _finetuning(values: Mapping[str, Any]) -> None:
    names = ("task", "config", "set", "init_from")
    task, path, overrides, init_from = map(values.get, names)
    finetuning_configuration(task, path, overrides or (), init_from, _load)


def _prediction(values: Mapping[str, Any]) -> None:
    for path in values.get("model", ()):
        is_tuned = bool(_load(path).task.name)
        require_config(is_tuned, path, "a fine-tuned model", "one without a task")


def _load(path: str, overrides: Sequence[str] = (), base: XLNetConfig | None = None) -> XLNetConfig:
    """Loads the configuration of a model directory or file on this machine."""
    _require_local(path)
    file = os.path.join(path, CONFIG_FILE) if os.path.isdir(path) else path
    if file_system.is_remote(path) or not os.path.isfile(file):
        raise _NotReadHereError  # Another format.
    return XLNetConfig.load(path, overrides, base)


_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "convert": _configuration,
    "finetune": _finetuning,
    "predict": _prediction,
    "prepare": _configuration,
    "pretrain": _configuration,
}
