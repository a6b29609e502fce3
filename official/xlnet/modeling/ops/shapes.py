"""Shapes of tensors: sizes, static where they are known, and columns as vectors."""

from __future__ import annotations

from typing import TypeAlias

import tensorflow as tf

Size: TypeAlias = "int | tf.Tensor"


def sizes(x: tf.Tensor) -> list[Size]:
    """Returns the size of every axis: an int where it is static, else an int32 scalar tensor.

    Args:
      x: tensor or array of known rank.

    Example:
      >>> sizes(tf.zeros([2, 3]))
      [2, 3]
    """
    static = tf.TensorShape(x.shape).as_list()
    if None not in static:
        return static
    dynamic = tf.shape(x)
    return [dynamic[axis] if size is None else size for axis, size in enumerate(static)]


def as_vector(x: tf.Tensor) -> tf.Tensor:
    """Returns a column [X, 1], as Keras takes labels and weights, as a vector [X].

    With a vector, arithmetic would broadcast a column to all pairs. If the size of the second axis
    is not known, it is asserted to be 1.

    Args:
      x: tensor; those of other shapes are returned as they are.

    Example:
      >>> as_vector(tf.constant([[3], [5]])).numpy()
      array([3, 5], dtype=int32)
    """
    return tf.squeeze(x, axis=1) if x.shape.rank == 2 and x.shape[1] in (1, None) else x
