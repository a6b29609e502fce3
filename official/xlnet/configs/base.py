"""Sections of the configuration: dataclasses of plain values, to which extensions add keys."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from official.xlnet.configs.registry import SETTINGS
from official.xlnet.configs.validation import FINITE, require
from official.xlnet.errors import ConfigError, did_you_mean, require_config
from official.xlnet.files.schema import conform, plain, shown, without_rules


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
        self.check_ranges(*self.as_dict())

    def check_ranges(self, *keys: str) -> None:
        """Raises `ConfigError` if a value is out of range; the default of a key never is."""
        kind: Any = type(self)
        for key in keys:
            value, where = getattr(self, key), f"{self.section}.{key}"
            if value is None or value == getattr(kind, key):
                continue
            for rule in _kinds(kind)[key][1]:
                rule.check(value, where)
            values = value if isinstance(value, tuple) else (value,)  # Without a rule, too.
            are_finite = all(FINITE.holds(x) for x in values if isinstance(x, float))
            require(are_finite, where, "finite numbers", value)
            require(value != "", where, "a text that is not empty", value)

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
            value = _decoded(value, _kinds(owner)[key][0], f"{source}{where}")
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
        value = _decoded(value, _kinds(own)[key][0], f"{self.section}.{key}")
        object.__setattr__(self, key, value)


def register_settings(
    section: str, **names: Sequence[str]
) -> Callable[[type[Section]], type[Section]]:
    """Decorator that registers the keys of an extension in a section of the configuration.

    It takes a subclass of the section's class, e.g. `ModelConfig`, whose annotated attributes are
    the keys with their defaults; it becomes a dataclass. The range of a key stands in its type, as
    a `Range` or `OneOf`; without, any finite number and any text that is not empty are allowed.
    Methods of the section that it overrides, such as `check` and `num_parameters`, apply once one
    of its names is chosen or one of its keys is set.

    Args:
      section: name of the section, e.g. `model`.
      **names: names of the extension by the key that chooses them, e.g. `network=("mine",)`.

    Raises:
      ConfigError: the class is not of the section, a key or a name is already registered,
        `unread_with` names a key that the class does not have, or it has the former `allowed`.

    Example:
      >>> @register_settings("model", network=["mine"])
      ... class MyModelConfig(ModelConfig):
      ...     window: Annotated[int, Range(1, 9)] = 3
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
    unread_with = vars(settings).get("unread_with", {})
    keys = [field.name for field in dataclasses.fields(settings)]
    for key in [*choices, *unread_with, *(other for other, _ in unread_with.values())]:
        expected, got = "a key of the class or its section", f"{key!r}{did_you_mean(key, keys)}"
        require_config(key in keys, settings.__qualname__, expected, got)
    expected = "a range in the type of its key, e.g. size: Annotated[int, Range(1, 9)] = 3"
    has_table = "allowed" in vars(settings)
    require_config(not has_table, settings.__qualname__, expected, "a table `allowed`")


@functools.cache
def _joined(settings: Any, section: Any) -> Any:
    """The class of a section with the keys and methods of another class of it, too."""
    if settings is None or issubclass(section, settings):
        return section
    if issubclass(settings, section):
        return settings
    return dataclasses.dataclass(type(section.__name__, (settings, section), {}))


@functools.cache
def _kinds(section: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """{key: its type, and its rules} of a class."""
    hints = typing.get_type_hints(section, include_extras=True)
    return {key: without_rules(hints[key]) for key in section.__dataclass_fields__}


def _decoded(value: Any, kind: Any, where: str) -> Any:
    """A value as one of a type; YAML has `1e-4` as a string, and numbers for names of classes."""
    value = plain(value)
    if isinstance(value, str) and float in (kind, *typing.get_args(kind)):
        with contextlib.suppress(ValueError):
            value = float(value)
    if kind == tuple[str, ...] and isinstance(value, list | tuple):
        strange = [x for x in value if type(x) is bool or (isinstance(x, int) and abs(x) >= 2**63)]
        advice = "; YAML reads yes, no, on and off as true and false: write them in quotes"
        got = f"{shown(value)}{advice if bool in map(type, strange) else ''}"
        require_config(not strange, where, "a list of strings", got)
        value = [str(x) if isinstance(x, int | float) else x for x in value]
    return conform(value, kind, where, ConfigError)


def nearest(key: str, known: Collection[str]) -> str:
    """Returns the end of a message about an unknown key: the one that it may stand for."""
    advice = "keys of an extension require importing its module (--import=MODULE)"
    return did_you_mean(key, known) or f"; known keys: {', '.join(known)}; {advice}"
