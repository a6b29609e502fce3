"""Sections of the configuration: dataclasses of plain values, with keys that others register."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from official.xlnet.configs.key_marks import KeyMark, UnreadWith
from official.xlnet.configs.registry import SETTINGS
from official.xlnet.configs.validation import FINITE, require
from official.xlnet.errors import ConfigError, did_you_mean, require_config
from official.xlnet.files.schema import conform, python_scalar, shown, without_rules

S = TypeVar("S", bound="Section")


@dataclasses.dataclass
class Section:
    """Section of the configuration: a dataclass, each of whose fields is a key.

    A section has a class with the keys that it always has, such as `TaskConfig`, and subclasses
    with further keys; `register_settings` registers them:

    - for values of one key, the chooser of the section. `task.name: ranking` makes the section a
      `RankingConfig`; `create` and `updated` look up the class.
    - for values of another key. `model.depth: shared` leaves the class as it is;
      `settings(UniversalModelConfig)` returns a copy of the section with the further keys.

    Attributes:
      keys_of_other_classes: {key: value} of keys that are not fields of this class, but of another
        one of the section. They are kept because the choice may follow, as in
        `--set=task.scoring=summary --set=task.name=ranking`, and because model directories of 1.0.0
        have the keys of all tasks. They are saved and compared as fields are. Keys that have their
        default are left out.

    Example:
      >>> ModelConfig.create(network="bert", max_positions=64).max_positions
      64
      >>> ModelConfig().settings(BertModelConfig).max_positions
      512
    """

    section: ClassVar[str]
    chooser: ClassVar[str] = ""
    # {key: (another key, values of that one with which nothing reads the first)}, for a key that
    # another class of the section declares; a class marks its own ones by `UnreadWith`.
    unread_with: ClassVar[Mapping[str, tuple[str, Collection[str]]]] = {}
    _is_read_only: ClassVar[bool] = False  # Instances that `settings` returns have true.

    keys_of_other_classes: dict[str, Any] = dataclasses.field(
        default_factory=dict, kw_only=True, repr=False
    )

    # Classes.

    @classmethod
    def create(cls, **values: Any) -> Any:
        """Creates a section of the class that the value of its chooser registers.

        Args:
          **values: keys of this class.

        Example:
          >>> type(TaskConfig.create(name="ranking", scoring="summary"))
          <class 'official.xlnet.tasks.ranking.RankingConfig'>
        """
        return cls.class_for(values.get(cls.chooser))(**values)

    @classmethod
    def class_for(cls, value: Any) -> Any:
        """Returns the class that a value of the chooser registers, or this class without one.

        Args:
          value: the value, e.g. `ranking`.
        """
        if not (cls.chooser and value):
            return cls
        return SETTINGS.find(f"{cls.section}.{cls.chooser}={value}", cls)

    @classmethod
    def _base_class(cls) -> Any:
        """The class of the section whose keys it always has, e.g. `TaskConfig`."""
        return next(base for base in reversed(cls.__mro__) if "section" in vars(base))

    def _classes_in_use(self) -> list[Any]:
        """The class of the section, and those that other values, and other keys, belong to."""
        classes: list[Any] = [type(self)]
        if self.chooser:
            classes.append(self.class_for(getattr(self, self.chooser)))
        for key in self.keys_of_other_classes:
            classes.append(SETTINGS.find(f"{self.section}.{key}", type(self)))
        for key in self.own_keys():
            value = getattr(self, key)
            values = value if isinstance(value, tuple) else (value,)
            for choice in values:
                name = f"{self.section}.{key}={choice}"
                if key != self.chooser and SETTINGS.is_listed(name):
                    classes.append(SETTINGS[name])
        further = [cls for cls in dict.fromkeys(classes) if not isinstance(self, cls)]
        return [type(self), *further]

    # Keys.

    @classmethod
    def own_keys(cls) -> list[str]:
        """Returns the keys that are fields of this class."""
        fields = dataclasses.fields(cls)
        return [field.name for field in fields if field.name != "keys_of_other_classes"]

    @classmethod
    def marked_keys(cls, mark: KeyMark) -> list[str]:
        """Returns the keys of this class that have a mark, see `configs.validation`.

        Args:
          mark: the mark.
        """
        types = key_types(cls)
        keys = [key for key in cls.own_keys() if mark in types[key][1]]
        if mark.former_attribute:
            keys += getattr(cls, mark.former_attribute, ())
        return list(dict.fromkeys(keys))

    def known_keys(self) -> list[str]:
        """Returns the names of all keys, including those that extensions and tasks add."""
        prefix = f"{self.section}."
        names = [name.removeprefix(prefix) for name in SETTINGS.names() if name.startswith(prefix)]
        keys_of_others = [name for name in names if name.isidentifier()]  # Not `depth=shared`.
        return list(dict.fromkeys([*self.own_keys(), *keys_of_others]))

    # Values.

    def settings(self, settings_class: type[S]) -> S:
        """Returns a read-only copy of the section with the keys of another class of it.

        Args:
          settings_class: a class of this section, see `register_settings`.
        """
        if isinstance(self, settings_class):
            return self
        values = {key: getattr(settings_class, key) for key in settings_class.own_keys()}
        values_of_others = {
            key: value for key, value in self.keys_of_other_classes.items() if key in values
        }
        values.update(vars(self))
        values.update(values_of_others)
        copy = object.__new__(settings_class)
        vars(copy).update(values, _is_read_only=True)
        return copy

    def as_chosen(self) -> Any:
        """Returns the section in the class that its `chooser` chooses, from its `settings`."""
        return self.settings(self.class_for(getattr(self, self.chooser, None)))

    def settings_in_use(self) -> list[Any]:
        """Returns the section, and its `settings` of each other class that it has keys of."""
        return [self.settings(cls) for cls in self._classes_in_use()]

    def as_dict(self) -> dict[str, Any]:
        """Returns {key: value}, with the keys of all classes that a value or key chooses."""
        values: dict[str, Any] = {}
        for settings in self.settings_in_use():
            for key in settings.own_keys():
                values[key] = getattr(settings, key)
        return values

    def updated(self, values: Mapping[str, Any], source: str) -> Any:
        """Returns a section with other values, of the class that they choose.

        Args:
          values: {key: value} as YAML and JSON have them.
          source: where they are from, for error messages.

        Raises:
          ConfigError: a key is unknown or a value has the wrong type.
        """
        decoded: dict[str, Any] = {}
        defaults: dict[str, Any] = {}
        for key, value in {**self.as_dict(), **values}.items():
            owner = self._owner(key, source)
            where = f"{source}{self.section}.{key}"
            decoded[key] = _decoded(value, key_types(owner)[key][0], where)
            defaults[key] = getattr(owner, key)
        chosen_class = self._base_class().class_for(decoded.get(self.chooser))
        own_values = {key: decoded.pop(key) for key in chosen_class.own_keys() if key in decoded}
        values_of_others = {key: value for key, value in decoded.items() if value != defaults[key]}
        return chosen_class(**own_values, keys_of_other_classes=values_of_others)

    def _owner(self, key: str, source: str) -> Any:
        """The class of this section that declares a key, which may be an unknown one."""
        base_class = self._base_class()
        if key in base_class.own_keys():
            return base_class
        owner = SETTINGS.find(f"{self.section}.{key}")
        if owner is None:
            known = {name: f"{self.section}.{name}" for name in self.known_keys()}
            where = f"{self.section}.{key}"
            raise ConfigError(f"{source}unknown key {where!r}{nearest(key, known, known)}")
        return owner

    def __setattr__(self, key: str, value: Any) -> None:
        where = f"{self.section}.{key}"
        chooses_other_class = key == self.chooser and self.class_for(value) is not type(self)
        if chooses_other_class and key not in vars(self):  # By the constructor.
            base, name = self._base_class().__name__, type(self).__name__
            expected = f"{base}.create({key}={value!r}, …)"
            raise ConfigError(f"{where}: expected {expected}, got {name}({key}={value!r}, …)")
        is_own = key in self.__dataclass_fields__
        if not is_own or self._is_read_only or chooses_other_class:
            known = self.known_keys()
            raise AttributeError(
                f"{where}: a value of another task or extension is set by "
                f"config.set('{where}={value}')"
                if key in known
                else f"{self.section}: unknown key {key!r}{did_you_mean(key, known)}"
            )
        if key != "keys_of_other_classes":
            value = _decoded(value, key_types(type(self))[key][0], where)
        object.__setattr__(self, key, value)

    # Checks.

    def check(self) -> None:
        """Raises `ConfigError` if a value is out of range or values are incompatible."""
        self.check_ranges(*self.own_keys())

    def check_ranges(self, *keys: str) -> None:
        """Raises `ConfigError` if a value is out of range; the default of a key never is."""
        types = key_types(type(self))
        for key in keys:
            value, where = getattr(self, key), f"{self.section}.{key}"
            if value is None or value == getattr(type(self), key):
                continue
            for rule in types[key][1]:
                if hasattr(rule, "check"):  # A range; marks have none.
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
        for settings in self.settings_in_use():
            for key, mark in _unread_marks(type(settings)):
                value, default = getattr(settings, key), getattr(type(settings), key)
                choice = getattr(settings, mark.key)
                if key in keys and value != default and choice in mark.values:
                    where = f"with {self.section}.{mark.key}={choice}"
                    expected = f"{default!r}, as nothing reads it {where}"
                    require(False, f"{self.section}.{key}", expected, value)

    def check_with(self, config: Any) -> None:
        """Raises `ConfigError` if values are incompatible with other sections.

        Args:
          config: the experiment configuration.
        """


def register_settings(
    section: str, **names: Sequence[str]
) -> Callable[[type[Section]], type[Section]]:
    """Decorator that registers the keys of an extension in a section of the configuration.

    It takes a subclass of the section's class, e.g. `ModelConfig`, whose annotated attributes are
    the keys with their defaults; it becomes a dataclass. The range of a key stands in its type, as
    a `Range` or `OneOf`; without, any finite number and any text that is not empty are allowed. So
    do the marks of `configs.validation`: whether a resumed run may change it, for example.
    `check` and `check_with` of the section apply once one of its names is chosen or one of its keys
    is set. With a name of `model.network`, `objective.kind`, `training.optimizer` or `task.name`
    the section has this class: other methods apply, too, and its keys are attributes. Else
    `section.settings(…)` reads them.

    Args:
      section: name of the section, e.g. `model`.
      **names: names of the extension by the key that chooses them, e.g. `network=("mine",)`.

    Raises:
      ConfigError: the class is not of the section, a key or a name is already registered,
        `UnreadWith` names a key that the class does not have, or the class has the former table
        `allowed`.

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
        declared = [key for key in inspect.get_annotations(settings) if key in settings.own_keys()]
        for name in [*declared, *chosen]:
            SETTINGS.register(f"{section}.{name}")(settings)
        return settings

    return add


def _check_keys(settings: Any, choices: Collection[str]) -> None:
    """Raises `ConfigError` unless all keys that a class of settings mentions are keys of it."""
    has_table = "allowed" in vars(settings)
    expected = "a range in the type of its key, e.g. size: Annotated[int, Range(1, 9)] = 3"
    require_config(not has_table, settings.__qualname__, expected, "a table `allowed`")
    mentioned = list(choices)
    for key, mark in _unread_marks(settings):
        mentioned += [key, mark.key]
    keys = [field.name for field in dataclasses.fields(settings)]
    for key in mentioned:
        expected, got = "a key of the class or its section", f"{key!r}{did_you_mean(key, keys)}"
        require_config(key in keys, settings.__qualname__, expected, got)


def _unread_marks(settings_class: Any) -> Iterator[tuple[str, UnreadWith]]:
    """Yields (key, with which values nothing reads it): those in types, and of `unread_with`."""
    for key, (_, rules) in key_types(settings_class).items():
        for rule in rules:
            if isinstance(rule, UnreadWith):
                yield key, rule
    for base in settings_class.__mro__:
        for key, (other_key, values) in vars(base).get("unread_with", {}).items():
            yield key, UnreadWith(other_key, values)


def key_types(section_class: type[Section]) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Returns {key: (its type, its ranges and marks)} of a class of a section."""
    return _key_types(typing.cast(Any, section_class))


@functools.cache
def _key_types(section_class: Any) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    hints = typing.get_type_hints(section_class, include_extras=True)
    return {key: without_rules(hints[key]) for key in section_class.__dataclass_fields__}


def _decoded(value: Any, expected_type: Any, where: str) -> Any:
    """A value as one of a type; YAML has `1e-4` as a string, and numbers for names of classes."""
    value = python_scalar(value)
    takes_float = float in (expected_type, *typing.get_args(expected_type))
    if isinstance(value, str) and takes_float:
        with contextlib.suppress(ValueError):
            value = float(value)
    if expected_type == tuple[str, ...] and isinstance(value, list | tuple):
        value = _decoded_strings(value, where)
    return conform(value, expected_type, where, ConfigError)


def _decoded_strings(values: Sequence[Any], where: str) -> list[Any]:
    """Strings, for which YAML may have numbers."""
    are_bools = [type(value) is bool for value in values]
    are_large = [isinstance(value, int) and abs(value) >= 2**63 for value in values]
    got = shown(values)
    if any(are_bools):
        got += "; YAML reads yes, no, on and off as true and false: write them in quotes"
    require_config(not any(are_bools + are_large), where, "a list of strings", got)
    return [str(value) if isinstance(value, int | float) else value for value in values]


def nearest(key: str, known: Collection[str], full: Mapping[str, str] | None = None) -> str:
    """Returns the end of a message about an unknown key: the one that it may stand for."""
    advice = "keys of an extension require importing its module (--import=MODULE)"
    return did_you_mean(key, known, full=full) or f"; known keys: {', '.join(known)}; {advice}"


def with_former_methods(owner: type, names: Mapping[str, str]) -> None:
    """Gives the methods that a class defines their former names, and those of others the new ones.

    So a subclass in another package may define, or call, a method by its former name.

    Args:
      owner: the class.
      names: {former name of a method: its name}.
    """
    methods = dict(vars(owner))
    for former_name, name in names.items():
        if name in methods:
            setattr(owner, former_name, methods[name])
        elif former_name in methods:
            setattr(owner, name, methods[former_name])
