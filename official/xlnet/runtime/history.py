"""Training history: one JSON line per step in `history.jsonl` of the model directory."""

from __future__ import annotations

import os
from typing import Any, TextIO

from absl import logging

from official.xlnet.files import file_system
from official.xlnet.files.arguments import AnyPath
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text, parse_json
from official.xlnet.files.public import public
from official.xlnet.files.schema import conform

HISTORY_FILE = "history.jsonl"


@public()
def read_history(model_dir: AnyPath) -> list[dict[str, Any]]:
    """Reads the training history of a model directory.

    Args:
      model_dir: the model directory.

    Returns:
      One dictionary per step, e.g. `{"step": 1, "loss": 7.2}`; empty if there is no history. An
      incomplete last line, left by a killed process, is ignored.

    Raises:
      DataError: a line does not hold a step and its loss.

    Example:
      >>> read_history("runs/model")[-1]
      {'step': 1000, 'loss': 4.31}
    """
    path = os.path.join(model_dir, HISTORY_FILE)
    try:
        with file_system.open(path, encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    history = []
    for line_number, text in enumerate(lines, start=1):
        where = f"{path}, line {line_number}"
        line = conform(parse_json(text, where), dict[str, Any], where)
        line["step"] = conform(line.get("step"), int, f"{where}: step")
        line["loss"] = conform(line.get("loss"), float, f"{where}: loss")
        history.append(line)
    return history


def open_history(model_dir: str, step: int) -> TextIO:
    """Opens the training history of a model directory to append lines to it.

    Args:
      model_dir: the model directory.
      step: the step to resume from. Lines of later steps, written by a run that was killed after
        its last checkpoint, are removed; missing lines before it are a warning.
    """
    path = os.path.join(model_dir, HISTORY_FILE)
    kept = [line for line in read_history(model_dir) if line["step"] <= step]
    last = kept[-1]["step"] if kept else 0
    if last < step:
        logging.warning(
            "%s: ends at step %d, but the checkpoint to resume from is of step %d; the losses in "
            "between are lost, unless these steps had no targets",
            path,
            last,
            step,
        )
    with atomic_write(path) as file:
        file.writelines(json_text(line).encode() + b"\n" for line in kept)
    return open(path, "a", encoding="utf-8", buffering=1)
