"""Tables of results: TSV, CSV, JSON lines or Parquet, by the name of the file."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text

ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet")


def check_row_ending(path: str) -> None:
    """Raises `ConfigError` if tables with the ending of a path cannot be written."""
    if not path.endswith(ENDINGS):
        raise ConfigError(f"{path}: expected a file ending in {', '.join(ENDINGS)}")
    if path.endswith(".parquet"):
        require_extra("pyarrow", "parquet", path)


def write_rows(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Writes a table atomically.

    TSV is not quoted, as this package reads it: tabs and line ends within a value are spaces.

    Args:
      path: the file, whose ending is one of `ENDINGS`.
      rows: {column: value}.

    Raises:
      ConfigError: see `check_row_ending`.

    Example:
      >>> write_rows("words.tsv", [{"word": "The", "surprisal": 4.5}])
    """
    import pandas as pd

    check_row_ending(path)
    frame = pd.DataFrame(rows)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with atomic_write(path) as file:
        if path.endswith(".parquet"):
            frame.to_parquet(file, index=False)
        elif path.endswith(".jsonl"):
            file.writelines(json_text(row).encode() + b"\n" for row in rows)
        elif path.endswith(".csv"):
            frame.to_csv(file, index=False)
        else:
            frame = frame.replace(r"[\t\r\n]", " ", regex=True)
            frame.to_csv(file, sep="\t", index=False, quoting=csv.QUOTE_NONE)
