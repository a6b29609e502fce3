"""Training history: one JSON line per step in `history.jsonl` of the model directory."""

from __future__ import annotations

import json
import os
from typing import Any

HISTORY_FILE = "history.jsonl"


def read_history(model_dir: str) -> list[dict[str, Any]]:
    """Reads the training history of a model directory.

    Args:
      model_dir: the model directory.

    Returns:
      One dictionary per step, e.g. `{"step": 1, "loss": 7.2}`; empty if there is no history. An
      incomplete last line, left by a killed process, is ignored.
    """
    try:
        with open(os.path.join(model_dir, HISTORY_FILE), encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


class HistoryWriter:
    """Appends to the training history of a model directory.

    Args:
      model_dir: the model directory.
      step: the step to resume from. Lines of later steps, written by a run that was killed after
        its last checkpoint, are removed.
    """

    def __init__(self, model_dir: str, step: int):
        path = os.path.join(model_dir, HISTORY_FILE)
        kept = [line for line in read_history(model_dir) if line["step"] <= step]
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)
        os.replace(path + ".tmp", path)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def write(self, **metrics: float) -> None:
        """Appends one line, e.g. `write(step=1, loss=7.2)`."""
        self._file.write(json.dumps(metrics) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
