"""Validation helpers for configuration values; errors name the key."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from official.xlnet.configs.registry import Registry
from official.xlnet.errors import ArgumentTypeError, ConfigError, did_you_mean
from official.xlnet.files.schema import Range, shown

_MOST_SHOWN = 1000  # Characters of a value in a message.


FINITE = Range()
POSITIVE = Range(0, open_low=True)
NOT_NEGATIVE = Range(0)
AT_LEAST_1 = Range(1)
SHARE = Range(0, 1)
RATE = Range(0, 1, open_high=True)
COUNT = Range(1, 2**31 - 1)
COUNT_OR_NONE = Range(0, 2**31 - 1)
SEED = Range(0, 2**32 - 1)

Allowed = Range | tuple[str, ...] | Registry


def check_values(section: str, values: Any, allowed: Mapping[str, Allowed]) -> None:
    """Raises `ConfigError` unless every value of a section is one that its key may have.

    The default of a key, e.g. an empty name, is always allowed.

    Args:
      section: name of the section, for the message.
      values: the section.
      allowed: {key: its range, the words that it may be, or the registry of its names}.
    """
    for key, expected in allowed.items():
        value = getattr(values, key)
        if value is None or value == getattr(type(values), key):
            continue
        if isinstance(expected, tuple):
            require_one_of(f"{section}.{key}", value, expected)
        elif isinstance(expected, Registry):
            expected.require(value)
        else:
            require(expected.holds(value), f"{section}.{key}", str(expected), value)


def require(condition: bool, key: str, expected: str, got: Any) -> None:
    """Raises `ConfigError` unless `condition` holds.

    Args:
      condition: the condition to check.
      key: the configuration key, e.g. `model.num_heads`.
      expected: description of the allowed values.
      got: the actual value.

    Raises:
      ConfigError: `condition` is false.

    Example:
      >>> require(False, "model.d_model", "an even number", 5)
      Traceback (most recent call last):
      official.xlnet.errors.ConfigError: model.d_model: expected an even number, got 5
    """
    if not condition:
        raise ConfigError(f"{key}: expected {expected}, got {shown(got, _MOST_SHOWN)}")


def require_number(name: str, value: Any, allowed: Range, kind: type = numbers.Integral) -> None:
    """Raises `ConfigError` unless an argument is a number of a kind and in a range.

    Args:
      name: name of the argument.
      value: the argument.
      allowed: its range.
      kind: `numbers.Integral`, or `numbers.Real` for fractions too; a `bool` is neither.
    """
    is_of_kind = isinstance(value, kind) and not isinstance(value, bool)
    require(is_of_kind, name, "an integer" if kind is numbers.Integral else "a number", value)
    allowed.check(value, name)


def require_one_of(key: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raises `ConfigError` unless `value` is one of `allowed`; suggests the nearest one."""
    # An array is not compared: the result would be an array.
    if not (isinstance(value, str) and value in allowed):
        got = f"{shown(value, _MOST_SHOWN)}{did_you_mean(str(value), allowed)}"
        raise ConfigError(f"{key}: expected one of {', '.join(allowed)}, got {got}")


def require_type(name: str, value: Any, expected: Any) -> None:
    """Raises `ArgumentTypeError` unless an argument is of a type, or of one of a union."""
    if not isinstance(value, expected):
        names = [kind.__name__ for kind in getattr(expected, "__args__", [expected])]
        raise ArgumentTypeError(f"{name}: expected {' or '.join(names)}, got {shown(value)}")
