"""Scalars of a run by step, read from its TensorBoard logs."""

from __future__ import annotations

import contextlib
import glob
import math
import os

import tensorflow as tf

from official.xlnet.runtime.metrics_log import LOG_DIR


def read_scalars(model_dir: str, name: str) -> dict[int, float]:
    """Returns the finite values of a scalar by step, from the TensorBoard logs of a run.

    Args:
      model_dir: the model directory.
      name: name of the scalar, e.g. `heldout_loss`.
    """
    values: dict[int, float] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(model_dir), LOG_DIR, "events.*"))):
        with contextlib.suppress(tf.errors.DataLossError):  # The last event of a killed run.
            for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
                if name.encode() not in record:
                    continue
                event = tf.compat.v1.Event.FromString(record)
                for value in event.summary.value:
                    if value.tag == name:
                        values[event.step] = float(tf.make_ndarray(value.tensor))
    return {step: value for step, value in values.items() if math.isfinite(value)}
