"""`XLNetConfig`: the configuration of an experiment, read by every command.

A dataclass with five sections:

* `model`: hyperparameters of the network (section 2 and table 7 of the paper);
* `data`: preprocessing of text into windows, and sampling of prediction targets;
* `objective`: the pre-training objective;
* `training`: batch size, optimizer, learning rate schedule, checkpointing and evaluation;
* `task`: the fine-tuning task; `task.name` is empty for a pre-trained model.

It is saved as `config.yaml` in every model directory, with a record of what the weights depend on
in `weights.json` beside it. An unknown key is an error that suggests the closest known key.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import textwrap
from collections.abc import Sequence
from typing import Any

import yaml

from official.xlnet.configs.base import nearest
from official.xlnet.configs.data import TEXT_SETTINGS, DataConfig
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.objective import ObjectiveConfig
from official.xlnet.configs.registry import RECIPE_FOLDERS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.configs.validation import require, require_type
from official.xlnet.errors import ConfigError, did_you_mean, require_config
from official.xlnet.files import file_system
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import json_text, parse_json, read_json, write_json
from official.xlnet.files.public import public
from official.xlnet.files.schema import shown
from official.xlnet.files.yaml_files import parse_yaml, read_yaml

CONFIG_FILE = "config.yaml"
WEIGHTS_FILE = "weights.json"
# Keys of `model` that weights do not depend on: they affect only training, or the memory length.
_NOT_OF_WEIGHTS = (
    "activation_dropout",
    "attention_init",
    "dropatt",
    "dropout",
    "init_std",
    "mem_len",
    "recompute",
)


def recipe_path(path: str) -> str:
    """Returns the path of the recipe that a path names, if nothing is there.

    Recipes are in `RECIPE_FOLDERS`: of this package, of its projects, and of others.

    Args:
      path: a path of any kind.

    Example:
      >>> recipe_path("tiny"), recipe_path("configs/tiny.yaml")  # Outside the checkout.
      ('…/official/xlnet/recipes/tiny.yaml', '…/official/xlnet/recipes/tiny.yaml')
    """
    name = path.removeprefix("configs/").removesuffix(".yaml")
    if os.path.isabs(path) or ".." in name:
        return path
    files = [os.path.join(folder, f"{name}.yaml") for folder in RECIPE_FOLDERS]
    recipes = [file for file in files if os.path.isfile(file)]
    return recipes[0] if recipes and not file_system.exists(path) else path


def require_model(path: str) -> None:
    """Raises `ConfigError` if there is nothing at the path of a model or recipe.

    Args:
      path: a path of any kind.
    """
    if not file_system.exists(path):
        raise ConfigError(
            f"no configuration at {path!r}: expected a model directory, an HF folder, a TF1 "
            "release, a YAML file or, where a recipe is asked for, its name, e.g. tiny"
            f"{_nearest_path(path)}"
        )


def _nearest_path(path: str) -> str:
    """Returns the end of the message about a missing path: the nearest one, or a recipe's name."""
    if file_system.is_remote(path):
        return ""
    folder, name = os.path.split(path.rstrip("/"))
    folders = [folder or ".", *(RECIPE_FOLDERS if folder in ("", "configs") else ())]
    names = [file for place in folders if os.path.isdir(place) for file in os.listdir(place)]
    if "." not in name:
        names += [file.removesuffix(".yaml") for file in names]
    return did_you_mean(name, names, full={entry: os.path.join(folder, entry) for entry in names})


@dataclasses.dataclass(slots=True, repr=False)
class XLNetConfig:
    """Configuration of an XLNet experiment.

    Attributes:
      model: hyperparameters of the network.
      data: preprocessing and target sampling.
      objective: the pre-training objective.
      training: optimizer, schedule and run control.
      task: the fine-tuning task.

    Example:
      >>> config = XLNetConfig.load("configs/tiny.yaml", overrides=["model.mem_len=0"])
      >>> config.model.d_head
      32
    """

    model: ModelConfig = dataclasses.field(default_factory=ModelConfig)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    objective: ObjectiveConfig = dataclasses.field(default_factory=ObjectiveConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    task: TaskConfig = dataclasses.field(default_factory=TaskConfig)

    def __repr__(self) -> str:
        return textwrap.indent(f"XLNetConfig\n{self._yaml()}", "  ").strip()

    @classmethod
    @public()
    def load(
        cls,
        path: AnyPath,
        overrides: Sequence[str] = (),
        base: XLNetConfig | None = None,
    ) -> XLNetConfig:
        """Loads and validates a configuration from a YAML file or a model directory.

        Args:
          path: a YAML file, a directory that contains `config.yaml`, or the name of a recipe of
            this package, e.g. `tiny` or `configs/tiny.yaml`.
          overrides: `key=value` strings applied after loading. A key is `section.name`, or just
            `name` if only one section has it; the value is parsed as YAML.
          base: configuration that supplies the keys missing from the file; by default, the
            default values.

        Returns:
          The validated configuration.

        Raises:
          ConfigError: the file is missing or is not a YAML mapping, a key is unknown, or values
            are out of range, incompatible, or not those that the weights were made with.
        """
        path = recipe_path(path)
        is_model = file_system.is_dir(path)
        if is_model:
            path = os.path.join(path, CONFIG_FILE)
        if not file_system.is_file(path):
            raise ConfigError(
                f"no configuration at {path!r}: expected a YAML file, a model directory or the "
                "name of a recipe, e.g. tiny; xlnet.load_config also reads HF folders and TF1 "
                "releases"
            )
        tree = read_yaml(path) or {}
        require_config(isinstance(tree, dict), path, "a mapping of sections", type(tree).__name__)
        config = cls.from_dict(tree, source=path, base=base)
        if os.path.basename(path) == CONFIG_FILE:
            config._check_weights(path)
        for name, values in tree.items():
            if not is_model:  # Directories of earlier versions have keys that nothing reads.
                getattr(config, name).require_read(values)
        config.apply(overrides)
        return config

    @classmethod
    def from_dict(
        cls, tree: dict[str, Any], source: str = "config", base: XLNetConfig | None = None
    ) -> XLNetConfig:
        """Creates a configuration from nested dictionaries, without checking value ranges.

        Args:
          tree: `{section: {key: value}}`.
          source: name of the source, for error messages.
          base: see `load`.

        Raises:
          ConfigError: a key is unknown or a value has the wrong type.
        """
        require_type(source, tree, dict)
        config = cls() if base is None else copy.deepcopy(base)
        for name, values in tree.items():
            if name not in config.__dataclass_fields__:
                known = nearest(name, config.__dataclass_fields__)
                raise ConfigError(f"{source}: unknown key {name!r}{known}")
            require_config(
                isinstance(values, dict), f"{source}: {name}", "a mapping", shown(values)
            )
            setattr(config, name, getattr(config, name).updated(values, f"{source}: "))
        return config

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Returns {section: {key: value}}."""
        return {
            field.name: getattr(self, field.name).as_dict() for field in dataclasses.fields(self)
        }

    def changes(self, earlier: XLNetConfig) -> list[str]:
        """Returns `section.key=value (was value)` for each key that differs from a configuration.

        Args:
          earlier: the other configuration.
        """
        pairs = self.changed_values(earlier).items()
        return [f"{key}={value!r} (was {was!r})" for key, (was, value) in pairs]

    def changed_values(self, earlier: XLNetConfig) -> dict[str, tuple[Any, Any]]:
        """Returns {section.key: (earlier value, value)} of the keys whose values differ.

        Args:
          earlier: the other configuration.
        """
        was = earlier.as_dict()
        return {
            f"{name}.{key}": (was[name].get(key), value)
            for name, section in self.as_dict().items()
            for key, value in section.items()
            if value != was[name].get(key)
        }

    @classmethod
    def of(cls, config: XLNetConfig | dict[str, Any]) -> XLNetConfig:
        """Returns a configuration as it is, or creates it from its dictionary.

        Raises:
          ConfigError: see `from_dict`.
          TypeError: `config` is neither.
        """
        require_type("config", config, XLNetConfig | dict)
        return cls.from_dict(config) if isinstance(config, dict) else config

    def apply(self, overrides: Sequence[str]) -> None:
        """Applies `key=value` overrides, see `load`, and validates the configuration.

        Raises:
          ConfigError: an override or its result is invalid, or nothing reads the key.
        """
        given = [self.set(override) for override in overrides]
        self.check()
        for section, key in given:
            getattr(self, section).require_read([key])

    def changed(self, overrides: Sequence[str]) -> XLNetConfig:
        """Returns a validated copy with `key=value` overrides; see `apply`."""
        config = copy.deepcopy(self)
        config.apply(overrides)
        return config

    def sections_of(self, key: str) -> list[str]:
        """Returns the names of the sections that have a key."""
        names = self.__dataclass_fields__
        return [name for name in names if key in getattr(self, name).known_keys()]

    def set(self, override: str) -> tuple[str, str]:
        """Applies one `key=value` override; see `load`.

        Returns:
          The section and the key.

        Raises:
          ConfigError: the key is unknown or ambiguous, or the value has the wrong type.
          TypeError: the override is not a string.
        """
        require_type("override", override, str)
        where = f"--set={override}"
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"{where}: expected key=value")
        sections = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        section, dot, name = key.partition(".")
        if not dot:
            owners = self.sections_of(key)
            if len(owners) > 1:
                raise ConfigError(
                    f"{where}: ambiguous key {key!r}; "
                    f"expected one of {', '.join(f'{owner}.{key}' for owner in owners)}"
                )
            if not owners:
                known = {x: f"{of}.{x}" for of in sections for x in sections[of].known_keys()}
                raise ConfigError(f"{where}: unknown key {key!r}{nearest(key, known, known)}")
            section, name = owners[0], key
        elif section not in sections:
            raise ConfigError(f"{where}: unknown section {section!r}{nearest(section, sections)}")
        values = {name: parse_yaml(text, where)}
        setattr(self, section, sections[section].updated(values, f"{where}: "))
        return section, name

    @property
    def reads_left_to_right(self) -> bool:
        """Whether no token sees a later one: by the network, or as pre-training taught it.

        The task of a fine-tuned model has taught the weights to read both sides, unless the
        network cannot.
        """
        is_causal = self.objective.kind == "causal" and not self.task.name
        return is_causal or self.model.attention_type == "uni"

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        for field in dataclasses.fields(self):
            for settings in getattr(self, field.name).settings_in_use():
                settings.check()
                settings.check_with(self)

    @public()
    def save(self, directory: AnyPath) -> None:
        """Writes `config.yaml` to a model directory atomically; creates the directory if needed."""
        file_system.make_dirs(directory)
        path, record = (os.path.join(directory, name) for name in (CONFIG_FILE, WEIGHTS_FILE))
        with contextlib.suppress(FileNotFoundError):
            file_system.remove(record)  # A kill leaves no record rather than another one's.
        write_bytes(path, self._yaml().encode())
        write_json(record, self._of_weights())

    def _yaml(self) -> str:
        tree = parse_json(json_text(self.as_dict()), CONFIG_FILE)  # Its own lists, for no aliases.
        return yaml.safe_dump(tree, sort_keys=False)

    def _of_weights(self) -> dict[str, Any]:
        """{section.key: value} of the settings that weights depend on."""
        settings = dict[str, Any]()
        for key, value in self.model.as_dict().items():
            if key not in _NOT_OF_WEIGHTS:
                settings[f"model.{key}"] = value
        for key in TEXT_SETTINGS:
            settings[f"data.{key}"] = getattr(self.data, key)
        settings["task.name"] = self.task.name
        settings["task.labels"] = list(self.task.labels)
        return parse_json(json_text(settings), WEIGHTS_FILE)

    def _check_weights(self, path: str) -> None:
        """Raises `ConfigError` if the weights beside a configuration were made with another."""
        record = os.path.join(os.path.dirname(path), WEIGHTS_FILE)
        settings = self._of_weights()
        if file_system.is_file(record):  # Models of earlier versions have none.
            for key, expected in read_json(record, dict[str, Any]).items():
                require(
                    settings.get(key, expected) == expected,
                    f"{path}: {key}",
                    f"{expected!r}, which the weights beside it were made with ({WEIGHTS_FILE})",
                    settings.get(key),
                )
