"""Configurations of other formats: settings under other names, with type checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from official.xlnet.checkpoints.source import Source
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.errors import require_config, require_data
from official.xlnet.files.schema import conform

# Key of `objective.kind` in other formats, which have no name for it; without it, `permutation`.
OBJECTIVE_KEY = "pretraining_objective"


def value_of(tree: dict[str, Any], key: str, path: str, expected: type, default: Any = None) -> Any:
    """Returns a value of a JSON object, with a type check.

    Args:
      tree: the JSON object.
      key: the key.
      path: path of the file, for the message.
      expected: the expected type; integers are accepted as `float`.
      default: value used if the key is missing or null.

    Raises:
      DataError: the value has another type, or is missing and has no default.
    """
    value = tree.get(key)
    return conform(default if value is None else value, expected, f"{path}: {key}")


def read_settings(
    config: XLNetConfig,
    names: Mapping[str, str],
    tree: dict[str, Any],
    path: str,
    required: bool = False,
) -> None:
    """Takes settings of a configuration from a JSON object.

    Args:
      config: the configuration, changed in place.
      names: {key of the object: `section.key` of the configuration}.
      tree: the JSON object.
      path: path of the file, for the message.
      required: whether every key has to be there; otherwise `config` has the defaults.

    Raises:
      DataError: a value has another type than the setting, or is missing and required.
    """
    for theirs, ours in names.items():
        section, key = ours.split(".")
        old = getattr(getattr(config, section), key)
        value = value_of(tree, theirs, path, type(old), default=None if required else old)
        setattr(getattr(config, section), key, value)


def check_head_size(model: ModelConfig, tree: dict[str, Any], path: str) -> None:
    """Raises `ConfigError` if the size of a configuration's heads contradicts their number.

    Args:
      model: settings of the configuration.
      tree: the configuration as a JSON object; `d_head` may be missing.
      path: path of its file, for the message.
    """
    d_head = value_of(tree, "d_head", path, int, default=model.d_head if model.num_heads else 0)
    require_config(
        d_head * model.num_heads == model.d_model,
        f"{path}: d_head",
        f"d_model / n_head = {model.d_model} / {model.num_heads}",
        d_head,
    )


def num_labels(source: Source, name: str, letters: str) -> int:
    """Returns the number of labels of a model's head.

    Args:
      source: the model.
      name: name of the kernel of its logits.
      letters: dimension letters of the kernel.

    Raises:
      DataError: it has other dimensions, or no labels.
    """
    shape = source.shapes[name]
    require_data(
        len(shape) == len(letters) and shape[letters.index("C")] > 0,
        f"{source.path}: variable {name!r}",
        f"{len(letters)} dimensions and at least one label",
        f"the shape {list(shape)}",
    )
    return shape[letters.index("C")]


def settings_under(names: Mapping[str, str], config: XLNetConfig) -> dict[str, Any]:
    """Returns settings of a configuration as a JSON object; see `read_settings`."""
    places = {theirs: ours.split(".") for theirs, ours in names.items()}
    return {name: getattr(getattr(config, section), key) for name, (section, key) in places.items()}
