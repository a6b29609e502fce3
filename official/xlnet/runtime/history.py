"""The record of a run: one JSON line for each step, in `history.jsonl` of the model directory."""

from __future__ import annotations

import json
import os
from typing import Any

HISTORY_FILE = "history.jsonl"


def read_history(model_dir: str) -> list[dict[str, Any]]:
    """Returns the lines of a run; none where there is no record.

    A line that a killed run did not finish is left out.
    """
    try:
        with open(os.path.join(model_dir, HISTORY_FILE), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


class HistoryWriter:
    """Appends to a run's record.

    Args:
      model_dir: the model directory.
      step: the step the run continues from: later lines, of a run that was killed after its
        last checkpoint, are taken out.
    """

    def __init__(self, model_dir: str, step: int):
        path = os.path.join(model_dir, HISTORY_FILE)
        kept = [line for line in read_history(model_dir) if line["step"] <= step]
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)
        os.replace(path + ".tmp", path)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def write(self, **figures: float) -> None:
        """Appends one line."""
        self._file.write(json.dumps(figures) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
