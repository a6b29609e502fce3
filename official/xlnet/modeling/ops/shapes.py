"""Sizes of a tensor: static where they are known, dynamic where they are not."""

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
