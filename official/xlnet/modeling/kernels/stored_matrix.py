"""Matrices of an inference network, stored in few bytes."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.product_type import multiply

_INT8_MAX = 127.0


class StoredMatrix(tf.Module):
    """A matrix [I, O] of numbers, or a kernel [I, N, H] that is one of O = N·H columns.

    float32, bfloat16 and float16 store the numbers; int8 stores round(w / s) and, for each row or
    column, s = max |w| / 127. All are multiplied in the type of `matmul_precision`: fewer bytes
    save memory, not time. An exported classifier of base takes 400, 225, 225 and 139 MB
    (docs/serving.md).

    Args:
      matrix: float32 [I, O] or [I, N, H].
      storage: one of `WEIGHT_STORAGE`.
      scale_axis: 0 gives every row its scale, 1 every column.

    Attributes:
      shape: shape of `matrix`.
    """

    def __init__(self, matrix: np.ndarray, storage: str, scale_axis: int = 1):
        super().__init__()
        self.shape = tf.TensorShape(matrix.shape)
        matrix = matrix.reshape(len(matrix), -1)
        self._scale = None
        self._scale_axis = scale_axis
        if storage == "int8":
            largest = np.abs(matrix).max(axis=1 - scale_axis, keepdims=True)
            scale = np.maximum(largest, np.finfo(np.float32).tiny) / np.float32(_INT8_MAX)
            self._scale = tf.Variable(scale, trainable=False, name="scale")
            matrix = np.rint(matrix / scale)
        dtype = tf.dtypes.as_dtype(storage)
        self._stored = tf.Variable(tf.cast(matrix, dtype), trainable=False, name="stored")

    def multiply(self, x: tf.Tensor, transpose: bool = False) -> tf.Tensor:
        """X · W [..., O]; with `transpose`, x · Wᵀ for x [..., O]."""
        # A scale of the summed axis is applied to x, one of the other axis to the product.
        scales_x = self._scale is not None and (self._scale_axis == 0) != transpose
        if scales_x:
            x *= tf.reshape(self._scale, [-1])
        axes = [[-1], [1 if transpose else 0]]
        product = multiply(x, self._stored, tf.tensordot, axes=axes)
        if self._scale is not None and not scales_x:
            product *= tf.reshape(self._scale, [-1])
        return product

    def rows(self, index: tf.Tensor) -> tf.Tensor:
        """Rows of the matrix, float32 [..., O]."""
        rows = tf.cast(tf.gather(self._stored, index), tf.float32)
        if self._scale is None:
            return rows
        return rows * (tf.gather(self._scale, index) if self._scale_axis == 0 else self._scale)
