"""Types in words, for messages."""

from __future__ import annotations

import collections.abc
import types
import typing
from typing import Any

from official.xlnet.files.schema.annotations import LISTS, takes_paths, without_rules

_DESCRIPTIONS: dict[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    types.NoneType: "None",
    collections.abc.Mapping: "a dictionary",
    dict: "an object",
}


def type_name(expected_type: Any) -> str:
    """Returns a type in words, e.g. `a list of strings`."""
    plain_type, rules = without_rules(expected_type)
    if takes_paths(rules):
        return "a path"
    origin = typing.get_origin(plain_type) or plain_type
    item_types = typing.get_args(plain_type)
    if origin in LISTS:
        if not item_types or item_types[0] is Any:
            return "a list"
        _, _, item = type_name(item_types[0]).partition(" ")  # Without the article.
        return f"a list of {item}s" if item else "a list"
    return _DESCRIPTIONS.get(origin) or origin.__name__
