"""The check of a model's outputs: NaN and infinity end with a sentence, not in a result."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data

Outputs = TypeVar("Outputs")


def finite(outputs: Outputs) -> Outputs:
    """Returns the outputs of a model unchanged.

    Weights are checked when they are loaded; large finite ones can still overflow in between.

    Args:
      outputs: a tensor or array, or any nest of them.

    Raises:
      DataError: one of them has NaN or infinity.

    Example:
      >>> finite(np.array([1.0, np.nan]))
      Traceback (most recent call last):
      official.xlnet.errors.DataError: outputs of the model: expected finite numbers, got NaN or …
    """
    for output in tf.nest.flatten(outputs):
        values = np.asarray(output)
        require_data(
            not np.issubdtype(values.dtype, np.floating) or bool(np.isfinite(values).all()),
            "outputs of the model",
            "finite numbers",
            "NaN or infinity: its activations overflow, as after a training run that "
            "diverged; take an earlier checkpoint",
        )
    return outputs
