"""A clear error where Keras 3 meets layers of tf_keras (Keras 2)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.errors import ConfigError

# What to say wherever an object of Keras 3 turns up.
ADVICE = (
    "tf.keras is Keras 3 in this process: set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, "
    "or use tf_keras in place of tf.keras"
)


def is_of_keras_3(x: Any) -> bool:
    """Whether a value is an object of Keras 3, such as a symbolic tensor or an optimizer."""
    return type(x).__module__.partition(".")[0] == "keras"


def require_legacy_keras(inputs: Any) -> None:
    """Raises `ConfigError` where a layer of tf_keras is called with symbolic tensors of Keras 3."""
    if any(is_of_keras_3(x) for x in tf.nest.flatten(inputs)):
        raise ConfigError(f"expected inputs of tf_keras, got a KerasTensor of Keras 3; {ADVICE}")
