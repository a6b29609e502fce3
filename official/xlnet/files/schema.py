"""Trees of JSON against a schema, which is written as Python types.

`int`, `float` (an integer will do), `str`, `bool`, `Any`, `X | None`, `list[X]`, `dict[str, X]`
and dataclasses of these. A `bool` is not a number.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from official.xlnet.errors import DataError


def conform(tree: Any, schema: Any, where: str) -> Any:
    """Returns a tree in the form of a schema: dataclasses are made of the objects for them.

    Args:
      tree: as `parse_json` gives it.
      schema: a type.
      where: what the tree is, e.g. a path, for error messages.

    Raises:
      DataError: a value is of another type, or an object lacks a key or has one too many.

    Example:
      >>> conform({"a": 3}, dict[str, float], "example")
      {'a': 3.0}
    """
    if schema is Any:
        return tree
    if dataclasses.is_dataclass(schema):
        return _object(tree, typing.cast(type, schema), where)
    origin, parts = typing.get_origin(schema), typing.get_args(schema)
    if origin is types.UnionType:
        (other,) = set(parts) - {types.NoneType}
        return None if tree is None else conform(tree, other, where)
    expected = origin or schema
    if expected is float and type(tree) is int:
        return float(tree)
    if type(tree) is not expected or tree != tree:  # NaN.
        raise DataError(f"{where}: expected {_NAMES[expected]}, got {shown(tree)}")
    if origin is list:
        return [conform(value, parts[0], f"{where}[{n}]") for n, value in enumerate(tree)]
    if origin is dict:
        return {key: conform(value, parts[1], f"{where}: {key}") for key, value in tree.items()}
    return tree


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


def _object(tree: Any, schema: type, where: str) -> Any:
    tree = conform(tree, dict[str, Any], where)
    hints, fields = typing.get_type_hints(schema), dataclasses.fields(schema)
    required = {field.name for field in fields if field.default is dataclasses.MISSING}
    for what, keys in (("the key", required - tree.keys()), ("no key", tree.keys() - hints)):
        for key in sorted(keys):
            raise DataError(f"{where}: expected {what} {key!r}, got {', '.join(sorted(tree))}")
    return schema(
        **{key: conform(value, hints[key], f"{where}: {key}") for key, value in tree.items()}
    )


_NAMES = {
    int: "an integer",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
