"""JSON without lone surrogates, in and out; written files contain no NaN.

Everything the package reads as JSON, from a training file to a checkpoint's record, is read here.
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
        return changed(tree, mended) if _SURROGATE_ESCAPE.search(text) else tree
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not valid JSON: {error}") from None


def mended(value: Any) -> Any:
    """A text with U+FFFD for lone surrogates, which UTF-8 cannot hold; other values as they are."""
    return _LONE_SURROGATE.sub("\ufffd", value) if isinstance(value, str) else value


def read_json(path: str, schema: Any = Any) -> Any:
    """Returns the tree in a JSON file, in the form of a schema; see `parse_json` and `conform`.

    Args:
      path: the file.
      schema: the form; see `conform`.

    Raises:
      DataError: it is not JSON in UTF-8, or of another form.
      FileNotFoundError: there is no file.
    """
    with open_text(path) as file:
        return conform(parse_json(file.read(), path), schema, path)


def read_record(path: str) -> dict[str, Any]:
    """Returns the object in a record of progress, a JSON file; empty if there is none.

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
        text = json.dumps(changed(tree, _finite), ensure_ascii=False, indent=indent)
    return text.encode("utf-8", "backslashreplace").decode()


def write_json(
    path: str, tree: Any, temporary_dir: str | None = None, indent: int | None = 1
) -> None:
    """Writes a JSON file; see `atomic_write`."""
    write_bytes(path, json_text(tree, indent).encode() + b"\n", temporary_dir)


def json_line(tree: Any) -> str:
    """Returns one line of JSON that is `printable`, in ASCII if standard output is."""
    text = printable(json_text(tree))
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
    return text if encoding == "utf8" else json.dumps(json.loads(text))


def changed(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with another value for each key, text and number."""
    if isinstance(tree, dict):
        return {change(key): changed(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [changed(value, change) for value in tree]
    return change(tree)


def _finite(value: Any) -> Any:
    """None for NaN and infinities."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
