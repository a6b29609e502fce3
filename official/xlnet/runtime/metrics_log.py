"""What a run tells while it goes on: its record, TensorBoard, JSON lines, events, progress."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import tensorflow as tf
from absl import logging

from official.xlnet.runtime.history import HistoryWriter
from official.xlnet.runtime.progress import Progress

LOG_DIR = "logs"
SCALARS_FILE = "scalars.jsonl"  # In LOG_DIR.
EVENTS_FILE = "events.jsonl"  # In the model directory.


class RunLog:
    """Writes the logs of a run, on the chief; on other workers nothing.

    Args:
      model_dir: the model directory.
      step: the step the run continues from.
      json_log: whether scalars also go to a file of JSON lines.
      is_chief: whether this process writes.
    """

    def __init__(self, model_dir: str, step: int, json_log: bool, is_chief: bool):
        self._is_chief = is_chief
        if not is_chief:
            return
        self._model_dir = model_dir
        directory = os.path.join(model_dir, LOG_DIR)
        self._history = HistoryWriter(model_dir, step)
        self._writer = tf.summary.create_file_writer(directory)
        self._json_path = os.path.join(directory, SCALARS_FILE) if json_log else None
        self._progress = Progress(sys.stderr)

    def history(self, step: int, loss: float) -> None:
        """Adds a step to the run's record."""
        if self._is_chief:
            self._history.write(step=step, loss=loss)

    def scalars(self, step: int, **figures: float) -> None:
        """Shows figures in TensorBoard and adds them to the JSON lines."""
        if not self._is_chief:
            return
        # A fit that failed earlier in this process may have left recording off.
        with self._writer.as_default(step), tf.summary.record_if(True):
            for name, value in figures.items():
                tf.summary.scalar(name, value)
        if self._json_path:
            _append(self._json_path, {"step": step, **figures})

    def event(self, kind: str, **details: Any) -> None:
        """Adds something out of the ordinary to the events, and warns of it."""
        if self._is_chief:
            _append(os.path.join(self._model_dir, EVENTS_FILE), {"event": kind, **details})
            facts = ", ".join(f"{name} {value}" for name, value in details.items())
            logging.warning("%s: %s", kind, facts)

    def progress(self, text: str, is_last: bool) -> None:
        """Shows how far the run is."""
        if self._is_chief:
            self._progress.show(text, is_last)

    def flush(self) -> None:
        """Writes what TensorBoard shows."""
        if self._is_chief:
            self._writer.flush()

    def close(self) -> None:
        """Closes all files."""
        if self._is_chief:
            self._writer.close()
            self._history.close()
            self._progress.close()


def _append(path: str, line: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
