"""JSON lines to write: one object a line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from official.xlnet.files.arguments import STANDARD
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_line, json_text


def write_json_lines(path: str | None, rows: Iterable[dict[str, Any]]) -> int:
    """Writes rows as JSON lines; returns their number.

    Args:
      path: the output file, written atomically; None or `-` for standard output, where each row is
        flushed.
      rows: JSON-serializable dictionaries.
    """
    num_rows, is_standard = 0, path in (None, STANDARD)
    with contextlib.nullcontext() if is_standard else atomic_write(str(path)) as file:
        for row in rows:
            num_rows += 1
            if file is None:
                print(json_line(row), flush=True)
            else:
                file.write(json_text(row).encode() + b"\n")
    return num_rows
