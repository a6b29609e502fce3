"""Orthogonalization of a matrix by Newton-Schulz iterations, for the Muon optimizer."""

from __future__ import annotations

import tensorflow as tf

# Coefficients of Jordan et al., with the steepest slope at 0: five iterations bring all singular
# values above about 0.01 of the norm into 0.7 … 1.2.
_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 5
_EPSILON = 1e-7


def orthogonalized(matrix: tf.Tensor) -> tf.Tensor:
    """Approximates U·Vᵀ of a matrix U·Σ·Vᵀ: the same singular vectors, singular values near 1.

        X = G / ‖G‖;   X = a·X + (b·A + c·A²)·X  with A = X·Xᵀ,  five times

    Args:
      matrix: G, float [rows, columns].

    Returns:
      A matrix of the same shape; zeros for zeros.

    Example:
      >>> orthogonalized(tf.constant([[3.0, 0.0], [0.0, 0.1]])).numpy().round(1)
      array([[0.7, 0. ],
             [0. , 1. ]], dtype=float32)
    """
    is_tall = matrix.shape[0] > matrix.shape[1]  # A is as small as it can be.
    x = tf.transpose(matrix) if is_tall else matrix
    x /= tf.norm(x) + _EPSILON
    a, b, c = _COEFFICIENTS
    for _ in range(_ITERATIONS):
        product = tf.matmul(x, x, transpose_b=True)
        x = a * x + tf.matmul(b * product + c * tf.matmul(product, product), x)
    return tf.transpose(x) if is_tall else x
