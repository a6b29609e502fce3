"""Sections of the configuration: dataclasses of plain values, to which extensions add keys."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from official.xlnet.configs.registry import SETTINGS, Registry
from official.xlnet.configs.validation import FINITE, Allowed, Range, check_values, require
from official.xlnet.errors import ConfigError, did_you_mean, require_config
from official.xlnet.files.schema import plain, shown

_MOST = 10**100  # Larger integers are for no key, and Python may not write them in a message.


@dataclasses.dataclass
class Section:
    """A section of the configuration, to which extensions add keys (`register_settings`).

    A section that is created with a name of an extension, or with one of its keys, has the class of
    the extension, too: its keys and its checks.

    Example:
      >>> type(ModelConfig(network="bert")).mro()[:2]
      [<class '….BertModelConfig'>, <class '….ModelConfig'>]
    """

    section: ClassVar[str]
    # {key: its range, the words that it may be, or the registry of its names}
    allowed: ClassVar[Mapping[str, Allowed]] = {}
    # {key: (another key, values of that one with which nothing reads the first)}
    unread_with: ClassVar[Mapping[str, tuple[str, tuple[str, ...]]]] = {}

    def __new__(cls, **values: Any) -> Section:
        """Creates a section of the class that its values choose."""
        return object.__new__(cls._class_with(values))

    @classmethod
    def _class_with(cls, values: Mapping[str, Any]) -> Any:
        kind: Any = cls
        for key, value in values.items():
            names = value if isinstance(value, tuple) else (value,)
            own = () if key in cls.__dataclass_fields__ else (key,)
            for what in (*own, *(f"{key}={name}" for name in names)):
                kind = _joined(cls.settings_with(what), kind)
        return kind

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        for part in type(self).__mro__:
            check_values(self.section, self, vars(part).get("allowed", {}))
        for key, value in self.as_dict().items():  # Keys without a range, too.
            values = value if isinstance(value, tuple) else (value,)
            are_finite = all(FINITE.holds(x) for x in values if isinstance(x, float))
            require(are_finite, f"{self.section}.{key}", "finite numbers", value)
            is_given = value != "" or getattr(type(self), key) == ""
            require(is_given, f"{self.section}.{key}", "a text that is not empty", value)

    def require_read(self, keys: Collection[str]) -> None:
        """Raises `ConfigError` if a key has another value than its default, and nothing reads it.

        Args:
          keys: the keys that were given.
        """
        for part in type(self).__mro__:
            for key, (other, values) in vars(part).get("unread_with", {}).items():
                value, default = getattr(self, key), getattr(type(self), key)
                choice = getattr(self, other)
                require(
                    key not in keys or value == default or choice not in values,
                    f"{self.section}.{key}",
                    f"{default!r}, as nothing reads it with {self.section}.{other}={choice}",
                    value,
                )

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if values are incompatible with other sections.

        Args:
          config: the experiment configuration.
        """

    def known_keys(self) -> list[str]:
        """Returns the names of all keys, those that extensions and tasks add included."""
        added = [name.removeprefix(f"{self.section}.") for name in SETTINGS]
        return list(dict.fromkeys([*self.as_dict(), *filter(str.isidentifier, added)]))

    @classmethod
    def settings_with(cls, key: str) -> Any:
        """Returns the class of this section with a key of an extension; None for other keys."""
        return SETTINGS.get(f"{cls.section}.{key}")

    def updated(self, values: Mapping[str, Any], source: str) -> Any:
        """Returns a section with other values, of the class that they choose.

        Args:
          values: {key: value} as YAML and JSON have them.
          source: where they are from, for error messages.

        Raises:
          ConfigError: a key is unknown or a value has the wrong type.
        """
        section = self._plain()
        kept = {field.name for field in dataclasses.fields(section)}
        found = {
            key: value
            for key, value in self.as_dict().items()
            if key in kept or value != getattr(type(self), key)
        }
        for key, value in values.items():
            where = f"{self.section}.{key}"
            owner = section if key in kept else self.settings_with(key)
            if owner is None:
                raise ConfigError(f"{source}unknown key {where!r}{nearest(key, self.known_keys())}")
            value = _decoded(value, _types(owner)[key], f"{source}{where}")
            if owner is section or value != getattr(owner, key) or key in found:
                found[key] = value  # Old files have the keys of all extensions.
        return section(**found)

    def as_dict(self) -> dict[str, Any]:
        """Returns {key: value}."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __reduce__(self) -> tuple:
        # A class that joins extensions has no name.
        return functools.partial(self._plain(), **self.as_dict()), ()

    @classmethod
    def _plain(cls) -> Any:
        """The class without extensions."""
        return next(part for part in reversed(cls.__mro__) if "section" in vars(part))

    def __getattr__(self, key: str) -> Any:
        if settings := self.settings_with(key):  # The default of a key of an extension.
            return getattr(settings, key)
        raise AttributeError(f"{self.section}: no key {key!r}")

    def __setattr__(self, key: str, value: Any) -> None:
        own: Any = type(self)
        if key not in self.__dataclass_fields__ and key not in self.known_keys():
            known = did_you_mean(key, self.known_keys())
            raise AttributeError(f"{self.section}: unknown key {key!r}{known}")
        if key not in self.__dataclass_fields__ or self._class_with({key: value}) is not own:
            raise AttributeError(
                f"{self.section}.{key}: a value of another task or extension is set by "
                f"config.set('{self.section}.{key}={value}')"
            )
        value = _decoded(value, _types(own)[key], f"{self.section}.{key}")
        object.__setattr__(self, key, value)


def register_settings(
    section: str, **names: Sequence[str]
) -> Callable[[type[Section]], type[Section]]:
    """Decorator that registers the keys of an extension in a section of the configuration.

    It takes a subclass of the section's class, e.g. `ModelConfig`, whose annotated attributes are
    the keys with their defaults; it becomes a dataclass. `allowed` has the range of each key;
    without, any finite number and any text that is not empty are allowed.
    Methods of the section that it overrides, such as `check` and `num_parameters`, apply once one
    of its names is chosen or one of its keys is set.

    Args:
      section: name of the section, e.g. `model`.
      **names: names of the extension by the key that chooses them, e.g. `network=("mine",)`.

    Raises:
      ConfigError: the class is not of the section, a key or a name is already registered, or
        `allowed` or `unread_with` names a key that the class does not have.

    Example:
      >>> @register_settings("model", network=["mine"])
      ... class MyModelConfig(ModelConfig):
      ...     window: int = 3
      ...     allowed = {"window": Range(1, 9)}
    """

    def add(settings: type[Section]) -> type[Section]:
        expected = f"a subclass of the class of the section {section!r}"
        is_of_section = getattr(settings, "section", None) == section
        require_config(is_of_section, settings.__qualname__, expected, "another class")
        settings = dataclasses.dataclass(settings)
        _check_keys(settings, names)
        chosen = [f"{key}={name}" for key, of_key in names.items() for name in of_key]
        for what in [*inspect.get_annotations(settings), *chosen]:
            SETTINGS.register(f"{section}.{what}")(settings)
        return settings

    return add


def _check_keys(settings: Any, choices: Collection[str]) -> None:
    """Raises `ConfigError` unless all keys that a class of settings mentions are keys of it."""
    allowed, unread_with = (vars(settings).get(name, {}) for name in ("allowed", "unread_with"))
    keys = [field.name for field in dataclasses.fields(settings)]
    for key in [*choices, *allowed, *unread_with, *(other for other, _ in unread_with.values())]:
        expected, got = "a key of the class or its section", f"{key!r}{did_you_mean(key, keys)}"
        require_config(key in keys, settings.__qualname__, expected, got)
    for key, rule in allowed.items():
        is_rule = isinstance(rule, Range | tuple | Registry)
        expected = "a Range, a tuple of words or a Registry"
        require_config(is_rule, f"{settings.__qualname__}.allowed: {key}", expected, shown(rule))


@functools.cache
def _joined(settings: Any, section: Any) -> Any:
    """The class of a section with the keys and methods of another class of it, too."""
    if settings is None or issubclass(section, settings):
        return section
    if issubclass(settings, section):
        return settings
    return dataclasses.dataclass(type(section.__name__, (settings, section), {}))


@functools.cache
def _types(section: Any) -> dict[str, Any]:
    return typing.get_type_hints(section)


def _decoded(value: Any, kind: Any, where: str) -> Any:
    """A value of YAML, JSON or Python as one of a type: a list as a tuple, `1e-4` as a number."""
    if isinstance(kind, types.UnionType):
        if value is None:  # What may be left open.
            return None
        kind = typing.get_args(kind)[0]
    value = plain(value)
    expected = typing.get_origin(kind) or kind
    if expected is float and isinstance(value, int | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            value = float(value)  # YAML parses 1e-4 as a string.
    if expected is tuple and isinstance(value, list):
        value = _items(value, float in typing.get_args(kind), where)
    require_config(type(value) is expected, where, expected.__name__, shown(value))
    require_config(
        expected is not int or abs(value) <= _MOST,
        where,
        "an integer of a few digits",
        shown(value),
    )
    return value


def _items(values: list[Any], are_numbers: bool, where: str) -> tuple[float | str, ...]:
    """The values of a list as numbers or as strings."""
    allowed, has_bool = int | float if are_numbers else str | int | float, bool in map(type, values)
    sizes = [abs(value) for value in values if isinstance(value, int)]
    if (
        has_bool
        or max(sizes, default=0) >= 2**63
        or not all(isinstance(x, allowed) for x in values)
    ):
        advice = "YAML reads yes, no, on and off as true and false: write them in quotes"
        raise ConfigError(
            f"{where}: expected a list of {'numbers' if are_numbers else 'strings'}, got "
            f"{shown(values)}{f'; {advice}' if has_bool and not are_numbers else ''}"
        )
    return tuple(map(float if are_numbers else str, values))


def nearest(key: str, known: Collection[str]) -> str:
    """Returns the end of a message about an unknown key: the one that it may stand for."""
    advice = "keys of an extension require importing its module (--import=MODULE)"
    return did_you_mean(key, known) or f"; known keys: {', '.join(known)}; {advice}"
