"""Ranges of keys, and validation of values; errors name the key."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

from official.xlnet.errors import ArgumentTypeError, ConfigError
from official.xlnet.files.schema import OneOf, Range, shown

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


def require_one_of(key: str, value: Any, allowed: Iterable[str]) -> None:
    """Raises `ConfigError` unless `value` is one of `allowed`; suggests the nearest one."""
    OneOf(tuple(allowed)).check(value, key)


def require_type(name: str, value: Any, expected: Any) -> None:
    """Raises `ArgumentTypeError` unless an argument is of a type, or of one of a union."""
    if not isinstance(value, expected):
        names = [kind.__name__ for kind in getattr(expected, "__args__", [expected])]
        raise ArgumentTypeError(f"{name}: expected {' or '.join(names)}, got {shown(value)}")
