"""Sections of the configuration: dataclasses of plain values, with keys that others register."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import itertools
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from official.xlnet.configs.registry import SETTINGS
from official.xlnet.configs.validation import FINITE, require
from official.xlnet.errors import ConfigError, did_you_mean, require_config
from official.xlnet.files.schema import conform, python_scalar, shown, without_rules

S = TypeVar("S", bound="Section")


@dataclasses.dataclass
class Section:
    """A section of the configuration: its own keys, and those of others (`register_settings`).

    The value of one key, the chooser, registers the class of a section, whose keys are attributes.
    The keys of other classes are in `others`; `settings` returns the section as such a class has
    it.

    Attributes:
      others: {key of another class: its value}; without those that have their default.

    Example:
      >>> type(ModelConfig(network="bert")), ModelConfig().settings(BertModelConfig).max_positions
      (<class '….BertModelConfig'>, 512)
    """

    section: ClassVar[str]
    chooser: ClassVar[str] = ""
    # {key: (another key, values of that one with which nothing reads the first)}
    unread_with: ClassVar[Mapping[str, tuple[str, Collection[str]]]] = {}

    others: dict[str, Any] = dataclasses.field(default_factory=dict, kw_only=True)

    def __new__(cls, **values: Any) -> Section:
        """Creates a section of the class that its chooser registers, if it is a subclass."""
        kind = _chosen(cls, values.get(cls.chooser))
        return object.__new__(kind if issubclass(kind, cls) else cls)

    @classmethod
    def own_keys(cls) -> list[str]:
        """Returns the keys that are attributes."""
        return [field.name for field in dataclasses.fields(cls) if field.name != "others"]

    def settings(self, kind: type[S]) -> S:
        """Returns the section as another class of it has it: with its keys, and to be read only.

        Args:
          kind: a class of this section, see `register_settings`.
        """
        if isinstance(self, kind):
            return self
        found = object.__new__(kind)
        defaults = {key: getattr(kind, key) for key in kind.own_keys()}
        others = {key: value for key, value in self.others.items() if key in defaults}
        vars(found).update(defaults | vars(self) | others | {"is_view": True})
        return found

    def views(self) -> list[Any]:
        """Returns the section, also as each other class has it that a value or key chooses."""
        kinds = [_chosen(type(self), getattr(self, self.chooser))] if self.chooser else []
        kinds += [SETTINGS.find(f"{self.section}.{key}", type(self)) for key in self.others]
        for key in self.own_keys():
            value = getattr(self, key)
            for item in value if isinstance(value, tuple) else (value,):
                name = f"{self.section}.{key}={item}"
                if key != self.chooser and SETTINGS.is_listed(name):
                    kinds.append(SETTINGS[name])
        others = [kind for kind in dict.fromkeys(kinds) if not isinstance(self, kind)]
        return [self, *map(self.settings, others)]

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        self.check_ranges(*self.own_keys())

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
        for view in self.views():
            tables = [vars(part).get("unread_with", {}) for part in type(view).__mro__]
            for key, (other, values) in itertools.chain(*map(dict.items, tables)):
                value, default = getattr(view, key), getattr(type(view), key)
                choice = getattr(view, other)
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
        names, start = SETTINGS.names(), f"{self.section}."
        added = [name.removeprefix(start) for name in names if name.startswith(start)]
        return list(dict.fromkeys([*self.own_keys(), *filter(str.isidentifier, added)]))

    def updated(self, values: Mapping[str, Any], source: str) -> Any:
        """Returns a section with other values, of the class that they choose.

        Args:
          values: {key: value} as YAML and JSON have them.
          source: where they are from, for error messages.

        Raises:
          ConfigError: a key is unknown or a value has the wrong type.
        """
        plain: Any = next(part for part in reversed(type(self).__mro__) if "section" in vars(part))
        found, owners = self.as_dict(), dict[str, Any]()
        for key, value in (found | dict(values)).items():
            where = f"{self.section}.{key}"
            owners[key] = plain if key in plain.own_keys() else SETTINGS.find(where)
            if owners[key] is None:
                known = {name: f"{self.section}.{name}" for name in self.known_keys()}
                raise ConfigError(f"{source}unknown key {where!r}{nearest(key, known, known)}")
            found[key] = _decoded(value, _kinds(owners[key])[key][0], f"{source}{where}")
        kind = _chosen(plain, found.get(self.chooser))
        own = {key: found.pop(key) for key in kind.own_keys() if key in found}
        # Old files have the keys of all classes.
        others = {key: value for key, value in found.items() if value != getattr(owners[key], key)}
        return kind(**own, others=others)

    def as_dict(self) -> dict[str, Any]:
        """Returns {key: value}, with the keys of all classes that a value or key chooses."""
        return {key: getattr(view, key) for view in self.views() for key in view.own_keys()}

    def __setattr__(self, key: str, value: Any) -> None:
        where, kind = f"{self.section}.{key}", typing.cast(Any, type(self))
        is_own = key in self.__dataclass_fields__ and "is_view" not in vars(self)
        if key == self.chooser:
            is_own &= _chosen(kind, value) is kind
        if not is_own:
            known = self.known_keys()
            raise AttributeError(
                f"{where}: a value of another task or extension is set by "
                f"config.set('{where}={value}')"
                if key in known
                else f"{self.section}: unknown key {key!r}{did_you_mean(key, known)}"
            )
        decoded = value if key == "others" else _decoded(value, _kinds(kind)[key][0], where)
        object.__setattr__(self, key, decoded)


def _chosen(section: Any, value: Any) -> Any:
    """The class of a section that a value of its chooser registers, or the section's class."""
    if not (section.chooser and value):
        return section
    return SETTINGS.find(f"{section.section}.{section.chooser}={value}", section)


def register_settings(
    section: str, **names: Sequence[str]
) -> Callable[[type[Section]], type[Section]]:
    """Decorator that registers the keys of an extension in a section of the configuration.

    It takes a subclass of the section's class, e.g. `ModelConfig`, whose annotated attributes are
    the keys with their defaults; it becomes a dataclass. The range of a key stands in its type, as
    a `Range` or `OneOf`; without, any finite number and any text that is not empty are allowed.
    `check` and `check_with` of the section apply once one of its names is chosen or one of its keys
    is set. With a name of `model.network`, `objective.kind`, `training.optimizer` or `task.name`
    the section has this class: other methods apply, too, and its keys are attributes. Else
    `section.settings(…)` reads them.

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
def _kinds(section: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """{key: its type, and its rules} of a class."""
    hints = typing.get_type_hints(section, include_extras=True)
    return {key: without_rules(hints[key]) for key in section.__dataclass_fields__}


def _decoded(value: Any, kind: Any, where: str) -> Any:
    """A value as one of a type; YAML has `1e-4` as a string, and numbers for names of classes."""
    value = python_scalar(value)
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


def nearest(key: str, known: Collection[str], full: Mapping[str, str] | None = None) -> str:
    """Returns the end of a message about an unknown key: the one that it may stand for."""
    advice = "keys of an extension require importing its module (--import=MODULE)"
    return did_you_mean(key, known, full=full) or f"; known keys: {', '.join(known)}; {advice}"
