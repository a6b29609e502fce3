"""Ranges and marks in the type of a key, and validation of values; errors name the key."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Collection, Iterable
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


@dataclasses.dataclass(frozen=True, eq=False)
class KeyMark:
    """Mark in the type of a key; `Section.marked_keys` lists the keys that have it.

    Attributes:
      former_attribute: name of the class attribute that lists such keys in classes of other
        packages; empty: none.

    Example:
      >>> class MyConfig(TaskConfig):
      ...     threshold: Annotated[float, SHARE, MAY_CHANGE] = 0.5
      >>> MyConfig.marked_keys(MAY_CHANGE)
      ['label_type', 'patience', 'threshold']
    """

    former_attribute: str = ""


# A resumed run may have another value of a key with `MAY_CHANGE`, and not of one with `FIXED`. Of
# all other keys, fine-tuning refuses another value; pre-training takes another value of a key of
# `training`, and refuses it of the other sections.
MAY_CHANGE = KeyMark("may_change")
FIXED = KeyMark()
# The value follows from the training data where it is missing.
FROM_DATA = KeyMark("from_data")
# A trained head depends on the key: a run that continues with the head takes the value of its
# model.
OF_HEAD = KeyMark("of_head")
# Outputs follow from the key: the models of an ensemble have the same value.
OF_OUTPUTS = KeyMark("output_keys")


@dataclasses.dataclass(frozen=True)
class NewRuns:
    """Mark: `xlnet finetune` has another default, and model directories without the key mean this.

    Attributes:
      value: the default of new runs.
    """

    value: Any


@dataclasses.dataclass(frozen=True, eq=False)
class UnreadWith:
    """Mark: nothing reads the key where another key of the section has one of some values.

    Attributes:
      key: the other key.
      values: these values of it.

    Example:
      >>> class MyConfig(TrainingConfig):
      ...     cycles: Annotated[int, COUNT, UnreadWith("schedule", ("polynomial",))] = 3
    """

    key: str
    values: Collection[str]


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
