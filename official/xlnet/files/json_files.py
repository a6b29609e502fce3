"""Strict JSON: bounded numbers and nesting, no NaN, no lone surrogates; in and out.

Everything the package reads as JSON, from a training file to a checkpoint's record, is read here.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any, NoReturn

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.text import open_text

MAX_DEPTH = 64
MAX_DIGITS = 20  # Those of an unsigned 64-bit number.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, where: str) -> Any:
    r"""Returns the tree that a text in JSON describes.

    Lone surrogates, which UTF-8 cannot hold, become U+FFFD.

    Args:
      text: the text.
      where: what the text is, e.g. `train.jsonl, line 3`, for error messages.

    Raises:
      DataError: it is not JSON, or it has NaN, Infinity, an integer of more than 20 digits, or more
        than 64 levels of nesting.

    Example:
      >>> parse_json('{"label": "\\ud800", "score": 1e3}', "row 1")
      {'label': '\ufffd', 'score': 1000.0}
    """
    return _parsed(text, where, _DECODER)


def parse_data(text: str, where: str) -> Any:
    """Returns the tree of a row of data, of which only some values are read.

    As `parse_json`, except that NaN and infinities are numbers, and an integer of more than 20
    digits is the text of its digits; whoever reads the value checks it.

    Args:
      text: the row.
      where: file and line, for error messages.

    Raises:
      DataError: it is not JSON, or it has more than 64 levels of nesting.
    """
    return _parsed(text, where, _LENIENT_DECODER)


def _parsed(text: str, where: str, decoder: json.JSONDecoder) -> Any:
    try:
        tree = decoder.decode(text)
        if text.count("[") + text.count("{") > MAX_DEPTH and _depth(tree) > MAX_DEPTH:
            raise RecursionError
    except RecursionError:
        raise DataError(
            f"{where} is not valid JSON: expected at most {MAX_DEPTH} levels of nesting"
        ) from None
    except ValueError as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None
    return _mended(tree) if _SURROGATE_ESCAPE.search(text) else tree


def mended(text: str) -> str:
    """The text with U+FFFD for lone surrogates, which UTF-8 cannot hold."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def read_json(path: str) -> Any:
    """Returns the tree in a JSON file; see `parse_json`.

    Raises:
      DataError: it is not JSON in UTF-8.
      FileNotFoundError: there is no file.
    """
    with open_text(path) as file:
        text = file.read()
    return parse_json(text, path)


def json_text(tree: Any, indent: int | None = None) -> str:
    r"""Returns JSON that every parser reads: non-finite numbers are `null`.

    Characters are written as themselves, except for lone surrogates (`\udc80`).
    """
    try:
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(tree), ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode()


def write_json(path: str, tree: Any, indent: int | None = 1) -> None:
    """Writes a JSON file atomically."""
    with atomic_write(path) as file:
        file.write(json_text(tree, indent).encode() + b"\n")


def print_json(tree: Any) -> None:
    """Prints a tree as one line of JSON, in ASCII where standard output is not UTF-8."""
    text = json_text(tree)
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    print(text if encoding == "utf8" else json.dumps(json.loads(text)))


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(
            f"expected integers of at most {MAX_DIGITS} digits, got one of {len(digits)}"
        )
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, got {word[:MAX_DIGITS]}")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=_no_number)
_LENIENT_DECODER = json.JSONDecoder(
    parse_int=lambda digits: int(digits) if len(digits) <= MAX_DIGITS else digits
)


def _depth(tree: Any) -> int:
    """Levels of lists and objects, counted no further than to one too many."""
    depth, level = 0, [tree]
    while depth <= MAX_DEPTH:
        level = [node for node in level if isinstance(node, dict | list)]
        if not level:
            break
        depth += 1
        level = [
            child for node in level for child in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


def _mended(tree: Any) -> Any:
    """The tree without lone surrogates."""
    if isinstance(tree, str):
        return mended(tree)
    if isinstance(tree, dict):
        return {_mended(key): _mended(value) for key, value in tree.items()}
    return [_mended(value) for value in tree] if isinstance(tree, list) else tree


def _finite(tree: Any) -> Any:
    """The tree with None for NaN and infinities."""
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else None
    if isinstance(tree, dict):
        return {key: _finite(value) for key, value in tree.items()}
    return [_finite(value) for value in tree] if isinstance(tree, list | tuple) else tree
