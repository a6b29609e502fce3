"""Writing of JSON lines."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text, print_json


def write_json_lines(path: str | None, rows: Iterable[dict[str, Any]]) -> int:
    """Writes rows as JSON lines; returns their number.

    Args:
      path: the output file, written atomically; None for standard output.
      rows: JSON-serializable dictionaries.
    """
    number = 0
    with contextlib.nullcontext() if path is None else atomic_write(path) as file:
        for row in rows:
            number += 1
            if file is None:
                print_json(row)
            else:
                file.write(json_text(row).encode() + b"\n")
    return number
