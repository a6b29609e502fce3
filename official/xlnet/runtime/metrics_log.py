"""Logging of a training run: history, TensorBoard and JSON scalars, events, progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from official.xlnet.files.json_files import json_text
from official.xlnet.runtime.history import open_history
from official.xlnet.runtime.progress import Progress

LOG_DIR = "logs"
SCALARS_FILE = "scalars.jsonl"  # In LOG_DIR.
EVENTS_FILE = "events.jsonl"  # In the model directory.


class RunLog(Progress):
    """Logger of a training run, on its chief.

    Args:
      model_dir: the model directory.
      step: the step to resume from.
      json_log: whether scalars are also written to `logs/scalars.jsonl`.
    """

    def __init__(self, model_dir: str, step: int, json_log: bool):
        super().__init__(sys.stderr)
        self._model_dir = model_dir
        directory = os.path.join(model_dir, LOG_DIR)
        self._history = open_history(model_dir, step)
        self._writer = tf.summary.create_file_writer(directory)
        self._json_path = os.path.join(directory, SCALARS_FILE) if json_log else None

    def history(self, step: int, loss: float) -> None:
        """Appends a step and its loss to `history.jsonl`."""
        self._history.write(json_text({"step": step, "loss": loss}) + "\n")

    def scalars(self, step: int, **metrics: float) -> None:
        """Writes scalar metrics to TensorBoard and, if enabled, to `scalars.jsonl`.

        Args:
          step: the training step.
          **metrics: values by name, e.g. `loss=7.2, learning_rate=1e-4`.
        """
        # A failed `fit` earlier in this process may have left summary recording disabled.
        with self._writer.as_default(step), tf.summary.record_if(True):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)
        if self._json_path:
            _append(self._json_path, {"step": step, **metrics})

    def event(self, event_name: str, **details: Any) -> None:
        """Logs an unusual event, such as a skipped step, as a warning and to `events.jsonl`.

        Args:
          event_name: name of the event.
          **details: JSON-serializable details, e.g. `step=12`.
        """
        _append(os.path.join(self._model_dir, EVENTS_FILE), {"event": event_name, **details})
        text = ", ".join(f"{name} {value}" for name, value in details.items())
        logging.warning("%s: %s", event_name, text)

    def changed_settings(self, step: int, changes: Mapping[str, tuple[Any, Any]]) -> None:
        """Logs settings that a resumed run has changed, in a line and in `events.jsonl`.

        Args:
          step: the last step with the earlier values.
          changes: {key: (earlier value, value)}; nothing is logged without any.
        """
        if not changes:
            return
        event = {"event": "changed settings", "step": step, "changes": dict(changes)}
        _append(os.path.join(self._model_dir, EVENTS_FILE), event)
        texts = [f"{key} {before} -> {now}" for key, (before, now) in changes.items()]
        self.log_line(f"{', '.join(texts)} from step {step}")

    def flush(self) -> None:
        """Flushes the TensorBoard summaries."""
        self._writer.flush()

    def close(self) -> None:
        """Closes all log files."""
        self._writer.close()
        self._history.close()
        super().close()


class NoLog:
    """Logger of workers other than the chief: its methods do nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **metrics: None


def _append(path: str, line: dict[str, Any]) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json_text(line) + "\n")
