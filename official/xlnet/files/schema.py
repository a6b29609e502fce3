"""Values against types: `conform` decodes JSON, YAML, flags and arguments of functions.

`int`, `float` (an integer will do), `str`, `bool`, `Any`, unions, `list[X]`, `Sequence[X]`,
`dict[str, X]` and dataclasses of these. A `bool` is not a number, and NaN is none. `Annotated[X,
rule]` adds rules, such as `Range(1, 9)` or `OneOf(("left", "right"))`: objects with a method
`check(value, where)`.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import math
import numbers
import os
import types
import typing
from typing import Annotated, Any, Literal, TypeVar

from official.xlnet.errors import ConfigError, DataError, did_you_mean
from official.xlnet.files.registry import Registry

_FLOAT32_MAX = 3.4e38
_NUMBERS: dict[Any, Any] = {int: numbers.Integral, float: numbers.Real}
_LISTS = (collections.abc.Sequence, collections.abc.Iterable, list, tuple)
_MAPPINGS = (collections.abc.Mapping, dict)
_WORDS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    types.NoneType: "None",
    collections.abc.Mapping: "a dictionary",
    dict: "an object",
}


@dataclasses.dataclass(frozen=True)
class Range:
    """Rule: a number in a range, finite in float32, too.

    Attributes:
      low: the least.
      high: the greatest.
      open_low: whether `low` itself is left out.
      open_high: whether `high` itself is left out.

    Example:
      >>> Range(0, 1, open_high=True).holds(1.0)
      False
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is in the range; NaN and infinities never are."""
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below and abs(value) <= _FLOAT32_MAX

    def check(self, value: float, where: str) -> None:
        """Raises `ConfigError` unless a number is in the range."""
        if not self.holds(value):
            too_large = self.high == math.inf > abs(value) > _FLOAT32_MAX
            expected = f"at most {_FLOAT32_MAX} in size, as float32 holds" if too_large else self
            raise ConfigError(f"{where}: expected {expected}, got {shown(value)}")

    def __str__(self) -> str:
        if self.high == math.inf:
            if self.low == -math.inf:
                return "a finite number"
            return f"above {self.low} and finite" if self.open_low else f"at least {self.low}"
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"in {left}{self.low}, {self.high}{right}"


@dataclasses.dataclass(frozen=True)
class OneOf:
    """Rule: one of some words.

    Attributes:
      words: the words.
    """

    words: tuple[str, ...]

    def check(self, value: str, where: str) -> None:
        """Raises `ConfigError` unless a value is one of the words."""
        if not isinstance(value, str) or value not in self.words:  # Arrays are not compared.
            got = f"{shown(value)}{did_you_mean(str(value), self.words)}"
            raise ConfigError(f"{where}: expected one of {', '.join(self.words)}, got {got}")


class OneOfRegistry(OneOf):
    """Rule: one of the names of a registry.

    Args:
      registry: the registry; its first name is the default.
    """

    registry: Registry

    def __init__(self, registry: Registry):
        object.__setattr__(self, "registry", registry)  # As of a frozen dataclass.

    @property
    def words(self) -> tuple[str, ...]:
        """The names: the default, then the others in alphabetical order."""
        default, *others = self.registry.names()
        return default, *sorted(others)


def conform(value: Any, kind: Any, where: str, error: type[Exception] = DataError) -> Any:
    """Returns a value in the form of a type.

    Scalars of NumPy become those of Python, iterables lists or, where these are expected, tuples,
    integers floats, and objects of JSON the dataclasses that are expected.

    Args:
      value: a value of JSON or YAML, or an argument.
      kind: the type.
      where: what the value is, e.g. a path, for error messages.
      error: class of the error for a value of another type. A `TypeError`, for arguments, names
        the type of the value; integers have at most 64 bits then. With `ConfigError`, for
        settings, NaN is a number, which the range of a key refuses.

    Raises:
      DataError: a value is of another type, or an object lacks a key or has one too many.
      ConfigError: a rule does not hold.

    Example:
      >>> conform({"a": 3}, dict[str, float], "example")
      {'a': 3.0}
    """
    value = plain(value)
    for option in options(kind, value, takes_nan=error is ConfigError):
        return _conformed(value, option, where, error)
    expected = " or ".join(map(_words, parts_of_union(kind)))
    name = f"{type(value).__name__} " if issubclass(error, TypeError) else ""
    raise error(f"{where}: expected {expected}, got {name}{shown(value)}")


def check_fields(record: Any, error: type[Exception] = DataError) -> None:
    """Raises an error unless the fields of a dataclass are of their types; see `conform`."""
    for name, kind in _hints(record.__class__).items():
        conform(getattr(record, name), kind, name, error)


def options(kind: Any, value: Any, takes_nan: bool = False) -> list[Any]:
    """The types of a union, or a type itself, that a value is of; items are not looked at."""
    return [option for option in parts_of_union(kind) if _fits(value, option, takes_nan)]


def parts_of_union(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the type alone."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _fits(value: Any, kind: Any, takes_nan: bool) -> bool:
    kind, rules = without_rules(kind)
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in (Any, Literal) or isinstance(origin, TypeVar):
        return True
    if origin in _LISTS:
        is_table = hasattr(value, "columns") or hasattr(value, "column_names")
        is_one = isinstance(value, str | bytes | os.PathLike)
        has_items = isinstance(value, collections.abc.Iterable) and not is_one
        if parts == (Any,):
            return is_table or has_items  # Of any form; who reads it says which it takes.
        unordered = isinstance(value, collections.abc.Mapping | collections.abc.Set)
        return has_items and not is_table and not unordered
    if origin in _NUMBERS:
        is_number = isinstance(value, _NUMBERS[origin]) and type(value) is not bool
        return is_number and (takes_nan or value == value)
    if any(getattr(rule, "takes_paths", False) for rule in rules):
        return isinstance(value, str | os.PathLike)
    is_object = dataclasses.is_dataclass(origin) and isinstance(value, dict)
    return is_object or isinstance(value, origin)


def _conformed(value: Any, kind: Any, where: str, error: type[Exception]) -> Any:
    kind, rules = without_rules(kind)
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(value, dict):
        return _object(value, typing.cast(type, kind), where)
    if origin in _LISTS and parts not in ((), (Any,)):
        items = (conform(x, parts[0], f"{where}[{n}]", error) for n, x in enumerate(value))
        value = tuple(items) if origin is tuple else list(items)
    elif origin in _MAPPINGS and parts:
        value = {
            conform(key, parts[0], where, error): conform(x, parts[1], f"{where}: {key}", error)
            for key, x in value.items()
        }
    elif origin in _NUMBERS:
        most = 2**63 if issubclass(error, TypeError) else 10**100
        if isinstance(value, int) and abs(value) >= most:
            raise ConfigError(f"{where}: expected at most 64 bits, got {shown(value)}")
        value = origin(value)
    for rule in rules:
        if hasattr(rule, "check"):
            checked = rule.check(value, where)
            value = value if checked is None else checked
    return value


def without_rules(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type and the rules of its annotation."""
    if typing.get_origin(kind) is Annotated:
        return typing.get_args(kind)[0], kind.__metadata__
    return kind, ()


def _words(kind: Any) -> str:
    """A type in words, e.g. `a list of strings`."""
    kind, rules = without_rules(kind)
    if any(getattr(rule, "takes_paths", False) for rule in rules):
        return "a path"
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin in _LISTS:
        item = _words(parts[0]).partition(" ")[2] if parts and parts[0] is not Any else ""
        return f"a list of {item}s" if item else "a list"
    return _WORDS.get(origin) or origin.__name__


def plain(value: Any) -> Any:
    """A scalar of NumPy as one of Python; other values as they are."""
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    return value.item() if is_scalar else value


def shown(value: Any, most: int = 60) -> str:
    """`repr` of a value in one line, cut to `most` characters."""
    try:
        text = " ".join(repr(value[:most] if isinstance(value, str) else value).splitlines())
    except ValueError:  # Python writes no integers of more than 4,300 digits.
        text = "an integer of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}…"


def _object(tree: dict[Any, Any], schema: type, where: str) -> Any:
    hints, fields = _hints(schema), dataclasses.fields(schema)
    required = {field.name for field in fields if field.default is dataclasses.MISSING}
    for what, keys in (("the key", required - tree.keys()), ("no key", tree.keys() - hints)):
        for key in sorted(map(str, keys)):
            raise DataError(f"{where}: expected {what} {key!r}, got {', '.join(map(str, tree))}")
    return schema(
        **{key: conform(value, hints[key], f"{where}: {key}") for key, value in tree.items()}
    )


@functools.cache
def _hints(schema: type) -> dict[str, Any]:
    return typing.get_type_hints(schema, include_extras=True)
