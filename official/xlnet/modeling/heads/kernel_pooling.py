"""Kernel pooling (K-NRM, Xiong et al., 2017): soft counts of how well words of two texts match.

    M_ij = cos(q_i, d_j)
    K_k(M) = Σ_i log Σ_j exp(-(M_ij - μ_k)² / 2σ_k²)

Kernel 0 (μ = 1, σ = 0.001) counts exact matches, the ten others have μ = 0.9, 0.7, … -0.9 and
σ = 0.1.
"""

from __future__ import annotations

import tensorflow as tf

MEANS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9)
WIDTHS = (0.001,) + (0.1,) * 10
_SMALLEST = 1e-10  # In the logarithm of a soft count of nothing.


def kernel_pooling(
    query_BQD: tf.Tensor,
    document_BKD: tf.Tensor,
    is_query_BQ: tf.Tensor,
    is_document_BK: tf.Tensor,
    means: tuple[float, ...] = MEANS,
    widths: tuple[float, ...] = WIDTHS,
) -> tf.Tensor:
    """Features float32 [B, number of kernels].

    Args:
      query_BQD: vectors of the query's words.
      document_BKD: vectors of the document's words.
      is_query_BQ: bool, which of the query's words count.
      is_document_BK: bool, which of the document's words count.
      means: μ of every kernel.
      widths: σ of every kernel.
    """
    query_BQD = tf.math.l2_normalize(tf.cast(query_BQD, tf.float32), axis=-1)
    document_BKD = tf.math.l2_normalize(tf.cast(document_BKD, tf.float32), axis=-1)
    similarity_BQK1 = tf.matmul(query_BQD, document_BKD, transpose_b=True)[..., None]
    kernel_BQKk = tf.exp(-tf.square(similarity_BQK1 - means) / (2 * tf.square(tf.constant(widths))))
    kernel_BQKk *= tf.cast(is_document_BK, tf.float32)[:, None, :, None]
    log_count_BQk = tf.math.log(tf.maximum(tf.reduce_sum(kernel_BQKk, axis=2), _SMALLEST))
    return tf.reduce_sum(log_count_BQk * tf.cast(is_query_BQ, tf.float32)[..., None], axis=1)
