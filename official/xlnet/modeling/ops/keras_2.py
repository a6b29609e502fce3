"""What our layers and models need of tf_keras (Keras 2), as `keras_3` has it of Keras 3.

Only `keras.py` imports this module.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def is_building() -> bool:
    """Whether Keras calls a layer with placeholders, to create its variables."""
    return getattr(tf.compat.v1.get_default_graph(), "name", "") == "build_graph"


def apply_sums(optimizer: Any, gradients: list[tf.Tensor], variables: list) -> None:
    """Updates variables by gradients that are summed over all replicas, and not scaled."""
    pairs = zip(gradients, variables, strict=True)
    optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)


def scaled_loss(optimizer: Any, loss: tf.Tensor) -> tf.Tensor:
    """The loss to differentiate, with an optimizer that scales it."""
    return optimizer.get_scaled_loss(loss)


def unscaled_gradients(optimizer: Any, gradients: list) -> list:
    """Gradients of the loss, from gradients of the scaled loss."""
    return optimizer.get_unscaled_gradients(gradients)


def sum_before_clipping(optimizer: Any) -> None:
    """Does nothing: optimizers of tf_keras clip sums over replicas."""


def tf_variables(layer: Any) -> list[tf.Variable]:
    """The variables of a layer, as TensorFlow variables."""
    return list(layer.variables)


class Metric:
    """Nothing: metrics of tf_keras are part of checkpoints, and add up over replicas."""
