"""Values against types: `conform` decodes JSON, YAML, flags and arguments of functions.

Types are `int`, `float` (which takes integers), `str`, `bool`, `Any`, unions, `list[X]`,
`Sequence[X]`, `dict[str, X]` and dataclasses of these. Neither a `bool` nor NaN is a number.
`Annotated[X, rule]` adds rules, such as `Range(1, 9)` or `OneOf(("left", "right"))`: objects with a
method `check(value, where)`.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import math
import numbers
import os
import typing
from typing import Any, Literal, TypeVar

from official.xlnet.errors import ConfigError, DataError, did_you_mean
from official.xlnet.files.registry import Registry
from official.xlnet.files.schema.annotations import (
    LISTS,
    parts_of_union,
    takes_paths,
    types_of_fields,
    without_rules,
)

_FLOAT32_MAX = 3.4e38
_NUMBERS: dict[Any, Any] = {int: numbers.Integral, float: numbers.Real}
_MAPPINGS = (collections.abc.Mapping, dict)
_LARGEST_ARGUMENT = 2**63  # Exclusive, of integers: 64 bits.
_LARGEST_INTEGER = 10**100


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


def conform(value: Any, expected_type: Any, where: str, error: type[Exception] = DataError) -> Any:
    """Returns a value converted to a type, if it is a value of this type.

    NumPy scalars become Python scalars, iterables become lists or tuples, integers become floats,
    and JSON objects become dataclasses.

    Args:
      value: a value of JSON or YAML, or an argument.
      expected_type: the type, with rules if it is `Annotated`.
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
    value = python_scalar(value)
    matching_types = options(expected_type, value, takes_nan=error is ConfigError)
    if matching_types:
        return _converted(value, matching_types[0], where, error)
    from official.xlnet.files.schema.type_names import type_name

    descriptions = [type_name(option) for option in parts_of_union(expected_type)]
    got = shown(value)
    if issubclass(error, TypeError):
        got = f"{type(value).__name__} {got}"
    raise error(f"{where}: expected {' or '.join(descriptions)}, got {got}")


def check_fields(record: Any, error: type[Exception] = DataError) -> None:
    """Raises an error unless the fields of a dataclass are of their types; see `conform`."""
    for name, field_type in types_of_fields(record.__class__).items():
        conform(getattr(record, name), field_type, name, error)


def options(expected_type: Any, value: Any, takes_nan: bool = False) -> list[Any]:
    """Returns the types of a union (or the type alone) that a value has; items are not checked."""
    return [option for option in parts_of_union(expected_type) if _fits(value, option, takes_nan)]


def _fits(value: Any, expected_type: Any, takes_nan: bool) -> bool:
    """Whether a value is of a type that is not a union; items are not checked."""
    plain_type, rules = without_rules(expected_type)
    origin = typing.get_origin(plain_type) or plain_type
    if origin in (Any, Literal) or isinstance(origin, TypeVar):
        return True
    if origin in LISTS:
        return _is_list(value, takes_tables=typing.get_args(plain_type) == (Any,))
    if origin in _NUMBERS:
        is_number = isinstance(value, _NUMBERS[origin]) and type(value) is not bool
        return is_number and (takes_nan or value == value)
    if takes_paths(rules):
        return isinstance(value, str | os.PathLike)
    if dataclasses.is_dataclass(origin) and isinstance(value, dict):
        return True
    return isinstance(value, origin)


def _is_list(value: Any, takes_tables: bool) -> bool:
    """Whether a value has items in an order.

    Args:
      value: the value.
      takes_tables: whether tables, dictionaries and sets count, too; their reader checks them.
    """
    is_table = hasattr(value, "columns") or hasattr(value, "column_names")
    is_scalar = isinstance(value, str | bytes | os.PathLike)
    has_items = isinstance(value, collections.abc.Iterable) and not is_scalar
    if takes_tables:
        return is_table or has_items
    is_unordered = isinstance(value, collections.abc.Mapping | collections.abc.Set)
    return has_items and not is_table and not is_unordered


def _converted(value: Any, expected_type: Any, where: str, error: type[Exception]) -> Any:
    """Returns a value of a type, with its items, converted and checked by the rules of the type."""
    plain_type, rules = without_rules(expected_type)
    origin = typing.get_origin(plain_type) or plain_type
    item_types = typing.get_args(plain_type)
    if dataclasses.is_dataclass(plain_type) and isinstance(value, dict):
        from official.xlnet.files.schema.objects import require_keys

        require_keys(value, plain_type, where)
        record_type: Any = plain_type
        field_types = types_of_fields(record_type)
        fields = {
            key: conform(item, field_types[key], f"{where}: {key}") for key, item in value.items()
        }
        return record_type(**fields)
    if origin in LISTS and item_types not in ((), (Any,)):
        items = [
            conform(item, item_types[0], f"{where}[{index}]", error)
            for index, item in enumerate(value)
        ]
        value = tuple(items) if origin is tuple else items
    elif origin in _MAPPINGS and item_types:
        key_type, item_type = item_types
        value = {
            conform(key, key_type, where, error): conform(item, item_type, f"{where}: {key}", error)
            for key, item in value.items()
        }
    elif origin in _NUMBERS:
        limit = _LARGEST_ARGUMENT if issubclass(error, TypeError) else _LARGEST_INTEGER
        if isinstance(value, int) and abs(value) >= limit:
            raise ConfigError(f"{where}: expected at most 64 bits, got {shown(value)}")
        value = origin(value)
    return _checked(value, rules, where)


def _checked(value: Any, rules: tuple[Any, ...], where: str) -> Any:
    """Returns a value after its rules, which may return another value in its place."""
    for rule in rules:
        if hasattr(rule, "check"):
            replacement = rule.check(value, where)
            value = value if replacement is None else replacement
    return value


def python_scalar(value: Any) -> Any:
    """Returns a NumPy scalar as a Python scalar; other values unchanged."""
    is_scalar = getattr(value, "shape", None) == () and hasattr(value, "item")
    return value.item() if is_scalar else value


def shown(value: Any, most: int = 60) -> str:
    """Returns the `repr` of a value in one line for a message, cut to `most` characters."""
    shortened = value[:most] if isinstance(value, str) else value
    try:
        text = " ".join(repr(shortened).splitlines())
    except ValueError:  # Python writes no integers of more than 4,300 digits.
        text = "an integer of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}…"
