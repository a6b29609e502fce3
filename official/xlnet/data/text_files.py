"""Writing of JSON lines, by jobs that resume after the last complete line when they are killed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterable
from typing import IO, Any

from official.xlnet.errors import DataError
from official.xlnet.files.atomic import (
    atomic_write,
    lock,
    move,
    raise_with_name,
    remove_abandoned,
)
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


def write_resumed(
    path: str, rows_after: Callable[[int], Iterable[dict[str, Any]]], identity: Any, unit: int
) -> tuple[int, int]:
    """Writes rows as JSON lines, after those that a killed call with the same identity has left.

    They are written to `.NAME.….partial` beside the file, which is renamed at the end, and stays
    after an error. Those of earlier calls to the same file are removed, unless a process is writing
    them.

    Args:
      path: the output file, on a disk.
      rows_after: returns the rows after the first ones, given their number.
      identity: JSON of everything that the rows depend on.
      unit: rows are kept in multiples of this number.

    Returns:
      The numbers of all rows, and of those that were kept.

    Raises:
      DataError: another process is writing the same.
    """
    path_of_file = os.path.realpath(path)
    folder, name = os.path.split(path_of_file)
    key = hashlib.sha256(json_text(identity).encode()).hexdigest()[:16]
    partial = os.path.join(folder, f".{name}.{key}.partial")
    pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}\.partial")
    try:
        with open(partial, "a+b") as file:
            if not lock(file.fileno()):
                raise DataError(f"{path}: another process is writing there; wait for it")
            remove_abandoned(folder, pattern)
            number = kept = _keep_lines(file, unit)
            for row in rows_after(kept):
                number += 1
                file.write(json_text(row).encode() + b"\n")
            file.flush()
            move(partial, path_of_file)
    except OSError as error:
        raise_with_name(error, partial, path)
    return number, kept


def _keep_lines(file: IO[bytes], unit: int) -> int:
    """Truncates a file after the last multiple of `unit` lines; returns their number."""
    file.seek(0)
    number = kept = size = end = 0
    for line in file:
        if line.endswith(b"\n"):
            number, size = number + 1, size + len(line)
            if number % unit == 0:
                kept, end = number, size
    file.truncate(end)
    return kept
