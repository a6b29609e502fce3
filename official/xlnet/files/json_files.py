"""Reading and writing JSON, without lone surrogates and, in written files, without NaN.

All JSON that the package reads, from training files to checkpoint records, is read here.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from typing import Any

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.schema import conform
from official.xlnet.files.text import open_text, printable

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, where: str) -> Any:
    r"""Returns the tree that a text in JSON describes.

    Lone surrogates, which UTF-8 cannot hold, become U+FFFD.

    Args:
      text: the text.
      where: what the text is, e.g. `train.jsonl, line 3`, for error messages.

    Raises:
      DataError: it is not JSON.

    Example:
      >>> parse_json('{"label": "\\ud800", "score": 1e3}', "row 1")
      {'label': '\ufffd', 'score': 1000.0}
    """
    try:
        tree = json.loads(text)
        if _SURROGATE_ESCAPE.search(text):
            tree = map_values(tree, replace_lone_surrogates)
        return tree
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None


def replace_lone_surrogates(value: Any) -> Any:
    """Returns a text with U+FFFD for lone surrogates, which UTF-8 cannot hold.

    Values that are not texts are returned unchanged.
    """
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_json(path: str, schema: Any = Any) -> Any:
    """Returns the content of a JSON file, converted to a type; see `parse_json` and `conform`.

    Args:
      path: the file.
      schema: the type; see `conform`.

    Raises:
      DataError: it is not JSON in UTF-8, or of another type.
      FileNotFoundError: there is no file.
    """
    with open_text(path) as file:
        return conform(parse_json(file.read(), path), schema, path)


def read_record(path: str) -> dict[str, Any]:
    """Returns a progress record, a JSON object in a file; empty if there is none.

    A damaged record counts as missing: its work is done again.
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
        text = json.dumps(map_values(tree, _none_if_not_finite), ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode()


def write_json(
    path: str, tree: Any, temporary_dir: str | None = None, indent: int | None = 1
) -> None:
    """Writes a JSON file; see `atomic_write`."""
    write_bytes(path, json_text(tree, indent).encode() + b"\n", temporary_dir)


def json_line(tree: Any) -> str:
    """Returns one line of JSON that is `printable`, in ASCII if standard output is not UTF-8."""
    text = printable(json_text(tree))
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    return text if encoding == "utf8" else json.dumps(json.loads(text))


def map_values(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Returns a tree in which a function was applied to each key, text and number."""
    if isinstance(tree, dict):
        return {function(key): map_values(value, function) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [map_values(item, function) for item in tree]
    return function(tree)


def _none_if_not_finite(value: Any) -> Any:
    """Returns None for NaN and infinities, other values unchanged."""
    is_finite = not isinstance(value, float) or math.isfinite(value)
    return value if is_finite else None
