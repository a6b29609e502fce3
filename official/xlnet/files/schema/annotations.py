"""Annotations of types: parts of unions, rules, and the fields of dataclasses."""

from __future__ import annotations

import collections.abc
import functools
import types
import typing
from typing import Annotated, Any

LISTS = (collections.abc.Sequence, collections.abc.Iterable, list, tuple)


def parts_of_union(expected_type: Any) -> tuple[Any, ...]:
    """Returns the types of a union, or the type alone."""
    is_union = typing.get_origin(expected_type) in (typing.Union, types.UnionType)
    return typing.get_args(expected_type) if is_union else (expected_type,)


def without_rules(expected_type: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns a type and the rules of its annotation."""
    if typing.get_origin(expected_type) is Annotated:
        return typing.get_args(expected_type)[0], expected_type.__metadata__
    return expected_type, ()


def takes_paths(rules: tuple[Any, ...]) -> bool:
    """Whether one of the rules of a type is that it takes paths."""
    return any(getattr(rule, "takes_paths", False) for rule in rules)


@functools.cache
def types_of_fields(schema: type) -> dict[str, Any]:
    """Returns the types of the fields of a dataclass, with their rules."""
    return typing.get_type_hints(schema, include_extras=True)
