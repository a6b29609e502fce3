"""Texts in, results out: what commands that take a few texts have in common."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from official.xlnet.errors import DataError


def read_texts(texts: list[str], path: str | None) -> list[str]:
    """Returns texts given one by one, then those of a file, one a line; blank lines are skipped.

    Raises:
      DataError: there is no text at all, or the file is not UTF-8.
    """
    texts = list(texts)
    if path is not None:
        try:
            with open(path, encoding="utf-8") as file:
                texts += [line.rstrip("\n") for line in file if line.strip()]
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: expected UTF-8 text: {error}") from None
    if not texts:
        raise DataError(f"{path or '--text, --input'}: expected at least one text, got none")
    return texts


def write_json_lines(path: str | None, rows: Iterable[dict[str, Any]]) -> None:
    """Writes JSON objects, one a line, to a file by a rename, or to standard output."""
    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if path is not None:
            file = stack.enter_context(open(path + ".tmp", "w", encoding="utf-8"))
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    if path is not None:
        os.replace(path + ".tmp", path)
