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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from official.xlnet.configs.registry import SETTINGS
from official.xlnet.configs.validation import Allowed, check_values, require


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


class Section(hyperparams.Config):
    """A section of the configuration, to which extensions add keys (`register_settings`).

    A section takes the class of an extension when a name of the extension is chosen in it, or when
    one of its keys is set: it then has these keys, and the extension's checks.
    """

    section: ClassVar[str]
    # {key: its range, the words that it may be, or the registry of its names}
    allowed: ClassVar[Mapping[str, Allowed]] = {}
    # {key: (another key, values of that one with which nothing reads the first)}
    unread_with: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {}

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        for part in type(self).__mro__:
            check_values(self.section, self, vars(part).get("allowed", {}))

    def require_read(self, keys: Collection[str]) -> None:
        """Raises `ConfigError` if a key has another value than its default, and nothing reads it.

        Args:
          keys: the keys that were given.
        """
        for part in type(self).__mro__:
            for key, (other, values) in vars(part).get("unread_with", {}).items():
                value, default, choice = (
                    getattr(self, key),
                    getattr(type(self), key),
                    getattr(self, other),
                )
                if key in keys and value != default and choice in values:
                    expected = (
                        f"{default!r}, as nothing reads it with {self.section}.{other}={choice}"
                    )
                    require(False, f"{self.section}.{key}", expected, value)

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if values are incompatible with those of other sections.

        Args:
          config: the experiment configuration.
        """

    def known_keys(self) -> list[str]:
        """Returns the names of all keys, those that extensions and tasks add included."""
        own = [field.name for field in dataclasses.fields(self)]
        self.settings_with("")  # Imports all of them.
        added = [name.removeprefix(f"{self.section}.") for name in SETTINGS.names()]
        return list(dict.fromkeys([*own, *filter(str.isidentifier, added)]))

    def settings_with(self, key: str) -> Any:
        """Returns the class of this section with a key of an extension; None for other keys."""
        name = f"{self.section}.{key}"
        if "=" not in key and name not in SETTINGS:
            for known in [each for each in SETTINGS.modules if each.startswith(f"{self.section}.")]:
                SETTINGS.load(known)
        return SETTINGS[name] if name in SETTINGS.names() else None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Any:
        """Creates a section.

        Args:
          values: {key: value}, keys of extensions and tasks included.
        """
        section = cls()
        for key, value in values.items():
            setattr(section, key, value)
        return section

    def __reduce__(self) -> tuple:
        # A class that joins extensions has no name: pickle keeps the section's and sets its keys.
        plain: list[Any] = [part for part in type(self).__mro__ if "section" in vars(part)]
        return plain[-1].of, (self.as_dict(),)

    @classmethod
    def _get_annotations(cls) -> dict[str, Any]:
        # The model garden reads them each time that a key is set.
        return _annotations(cls)  # type: ignore[arg-type]

    def __getattr__(self, key: str) -> Any:
        settings = self.settings_with(key)
        return super().__getattr__(key) if settings is None else getattr(settings, key)

    def _set(self, key: str, value: Any) -> None:
        super()._set(key, value)
        names = value if isinstance(value, tuple) else (value,)
        own = () if key in type(self).__dataclass_fields__ else (key,)
        for what in (*own, *(f"{key}={name}" for name in names)):
            settings = self.settings_with(what)
            if settings is not None and not isinstance(self, settings):
                joined = _joined(settings, type(self))  # type: ignore[arg-type]
                object.__setattr__(self, "__class__", joined)
                for field in dataclasses.fields(settings):
                    self.__dict__.setdefault(field.name, field.default)


def register_settings(
    section: str, **names: Sequence[str]
) -> Callable[[type[Section]], type[Section]]:
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

    def add(settings: type[Section]) -> type[Section]:
        chosen = [f"{key}={name}" for key, of_key in names.items() for name in of_key]
        for what in [*inspect.get_annotations(settings), *chosen]:
            SETTINGS.register(f"{section}.{what}")(settings)
        return dataclasses.dataclass(settings)

    return add


@functools.cache
def _annotations(section: Any) -> dict[str, Any]:
    return super(Section, section)._get_annotations()


@functools.cache
def _joined(settings: Any, section: Any) -> Any:
    """The class of a section with the keys and methods of another class of it, too."""
    if issubclass(settings, section):
        return settings
    return dataclasses.dataclass(type(section.__name__, (settings, section), {}))
