"""Base classes of the configuration: tf-models' `hyperparams.Config`, without TensorFlow.

The modules of `hyperparams` import TensorFlow and Keras for functions that read and write files,
which are not used here. While they are imported, placeholders replace both packages; a placeholder
imports its package when an attribute is first used. Loading a configuration then takes 0.1 seconds
and 40 MB instead of 3 seconds and 630 MB.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from official.xlnet.configs.registry import Registry, extension_table, import_extension
from official.xlnet.configs.validation import Allowed, check_values


class _LazyModule(types.ModuleType):
    """A placeholder that imports its module when an attribute is first used."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)


@contextlib.contextmanager
def _deferred(*names: str) -> Iterator[None]:
    """Makes `import name` return a placeholder, unless the module is already loaded."""
    placeholders = {name: _LazyModule(name) for name in names if name not in sys.modules}
    sys.modules.update(placeholders)
    try:
        yield
    finally:
        for name, placeholder in placeholders.items():
            if sys.modules.get(name) is placeholder:
                del sys.modules[name]


with _deferred("tensorflow", "tf_keras"):
    from official.modeling import hyperparams

Config = hyperparams.Config

# Classes of sections with the keys of an extension, by "section.key" and by "section.key=name".
SETTINGS: Registry[type[Section]] = Registry("settings of an extension")


class Section(hyperparams.Config):
    """A section of the configuration, to which extensions add keys (`register_settings`).

    A section takes the class of an extension when a name of the extension is chosen in it, or when
    one of its keys is set: it then has these keys, and the extension's checks.
    """

    section: ClassVar[str]
    # {key: its range, the words that it may be, or the registry of its names}
    allowed: ClassVar[Mapping[str, Allowed]] = {}
    # {key whose values are names: their registry}
    registries: ClassVar[Mapping[str, Registry]] = {}

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        for part in type(self).__mro__:
            check_values(self.section, self, vars(part).get("allowed", {}))

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if values are incompatible with those of other sections.

        Args:
          config: the experiment configuration.
        """

    def known_keys(self) -> list[str]:
        """Returns the names of all keys, those that extensions add included."""
        _find_settings("")
        added = [name.removeprefix(f"{self.section}.") for name in SETTINGS]
        own = [field.name for field in dataclasses.fields(self)]
        return list(dict.fromkeys([*own, *(key for key in added if key.isidentifier())]))

    def settings_with(self, key: str) -> type[Section] | None:
        """Returns the class of this section with a key of an extension; None for other keys."""
        return None if key.startswith("_") else _find_settings(f"{self.section}.{key}")

    def __getattr__(self, key: str) -> Any:
        settings = self.settings_with(key)
        return super().__getattr__(key) if settings is None else getattr(settings, key)

    def _set(self, key: str, value: Any) -> None:
        super()._set(key, value)
        if key not in self.__dataclass_fields__:
            self._extend(self.settings_with(key))
        elif key in self.registries:
            for name in value if isinstance(value, tuple) else (value,):
                if name not in self.registries[key].own:
                    self._extend(self.settings_with(f"{key}={name}"))

    def _extend(self, settings: Any) -> None:
        """Takes a class of this section with further keys, which have their defaults."""
        if settings is not None and not isinstance(self, settings):
            joined = _joined(type(self), settings)  # type: ignore[arg-type]
            object.__setattr__(self, "__class__", joined)
            for field in dataclasses.fields(settings):
                self.__dict__.setdefault(field.name, field.default)


S = TypeVar("S", bound=type[Section])


def register_settings(section: str, **names: Sequence[str]) -> Callable[[S], S]:
    """Decorator that registers keys of an extension's own in a section of the configuration.

    It takes a subclass of the section's class, e.g. `ModelConfig`, whose annotated attributes are
    the keys with their defaults; it becomes a dataclass. `allowed` has the range of each key.
    Methods of the section that it overrides, such as `check` and `num_parameters`, apply once one
    of its names is chosen or one of its keys is set.

    Args:
      section: name of the section, e.g. `model`.
      **names: names of the extension by the key that chooses them, e.g. `network=("mine",)`.

    Raises:
      ConfigError: a key or a name is already registered.

    Example:
      >>> @register_settings("model", network=["mine"])
      ... class MyModelConfig(ModelConfig):
      ...     window: int = 3
      ...     allowed = {"window": Range(1, 9)}
    """

    def add(settings: S) -> S:
        dataclasses.dataclass(settings)
        chosen = [f"{key}={name}" for key, of_key in names.items() for name in of_key]
        for what in [*inspect.get_annotations(settings), *chosen]:
            _find_settings(f"{section}.{what}")  # Registers those of this package first.
            SETTINGS.register(f"{section}.{what}")(settings)
        return settings

    return add


def _find_settings(what: str) -> type[Section] | None:
    """What is registered, after importing the settings of this package's extensions if needed."""
    if what not in SETTINGS:
        for module in extension_table("SETTINGS"):
            import_extension(module)
    return SETTINGS.get(what)


@functools.cache
def _joined(section: Any, settings: Any) -> Any:
    """The class of a section with the keys and methods of another class of it, too."""
    if issubclass(settings, section):
        return settings
    return dataclasses.dataclass(type(section.__name__, (settings, section), {}))
