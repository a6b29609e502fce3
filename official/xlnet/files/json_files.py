"""Strict JSON: bounded numbers and nesting, no NaN, no lone surrogates; in and out.

Everything the package reads as JSON, from a training file to a checkpoint's record, is read here.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.schema import conform
from official.xlnet.files.text import open_text, printable

MAX_DEPTH = 64
MAX_CHARS = 1 << 30  # Of a file.
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
    return _changed(tree, mended) if _SURROGATE_ESCAPE.search(text) else tree


def mended(value: Any) -> Any:
    """A text with U+FFFD for lone surrogates, which UTF-8 cannot hold; other values as they are."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_json(path: str, schema: Any = Any, parse: Callable[[str, str], Any] = parse_json) -> Any:
    """Returns the tree in a JSON file, in the form of a schema; see `parse_json` and `conform`.

    Args:
      path: the file.
      schema: the form; see `conform`.
      parse: `parse_json`, or `parse_data` for a file that another program wrote.

    Raises:
      DataError: it is not JSON in UTF-8, or of another form.
      FileNotFoundError: there is no file.
    """
    with open_text(path) as file:
        text = file.read(MAX_CHARS + 1)
    if len(text) > MAX_CHARS:
        raise DataError(f"{path}: expected at most {MAX_CHARS:,} characters")
    return conform(parse(text, path), schema, path)


def read_record(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file that says what is done; empty if there is none.

    A damaged record counts as absent: its work is done again.
    """
    try:
        return read_json(path, dict[str, Any])
    except (FileNotFoundError, DataError):
        return {}


def json_text(tree: Any, indent: int | None = None) -> str:
    r"""Returns JSON that every parser reads: non-finite numbers are `null`.

    Characters are written as themselves, except for lone surrogates (`\udc80`).
    """
    try:
        text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_changed(tree, _finite), ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode()


def write_json(
    path: str, tree: Any, temporary_dir: str | None = None, indent: int | None = 1
) -> None:
    """Writes a JSON file; see `atomic_write`."""
    write_bytes(path, json_text(tree, indent).encode() + b"\n", temporary_dir)


def print_json(tree: Any) -> None:
    """Prints a tree as one line of JSON that `printable` text is, in ASCII if the output is."""
    text = printable(json_text(tree))
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
    """Levels of lists and objects."""
    if not isinstance(tree, dict | list):
        return 0
    return 1 + max(map(_depth, tree.values() if isinstance(tree, dict) else tree), default=0)


def _changed(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with another value for each key, text and number."""
    if isinstance(tree, dict):
        return {change(key): _changed(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_changed(value, change) for value in tree]
    return change(tree)


def _finite(value: Any) -> Any:
    """None for NaN and infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
