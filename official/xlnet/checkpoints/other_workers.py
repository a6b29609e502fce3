"""What other workers of a cluster do while the chief saves a checkpoint."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import tensorflow as tf


def take_part_in_saving(state: tf.train.Checkpoint) -> None:
    """Saves the parts that one worker cannot save alone, to a directory that is removed.

    Args:
      state: the state of the run, which the chief saves at the same time.
    """
    parts = parts_of_all_workers(state)
    if parts:
        with tempfile.TemporaryDirectory() as directory:
            tf.train.Checkpoint(**parts).write(os.path.join(directory, "ckpt"))


def parts_of_all_workers(state: tf.train.Checkpoint) -> dict[str, Any]:
    """The parts of a state that cannot be saved by one worker alone, in the order of saving.

    They have a value for each replica, such as the sums of metrics and the recurrent memory. While
    one worker saves the state, each of the others has to save these parts.
    """
    parts: dict[str, Any] = {}
    for part in tf.train.TrackableView(state).descendants():
        # An enumeration of TensorFlow, or one of Keras' words.
        if "on_read" in str(getattr(part, "synchronization", "")).lower():
            parts[f"part_{len(parts):05d}"] = part
    return parts
