"""Kernel pooling (K-NRM, Xiong et al., 2017): soft term frequencies for ranking.

    M_ij = cos(q_i, d_j)
    K_k(M) = Σ_i log Σ_j exp(-(M_ij - μ_k)² / 2σ_k²)

Kernel 0 (μ = 1, σ = 0.001) counts exact matches; the ten others have μ = 0.9, 0.7, … -0.9 and
σ = 0.1.
"""

from __future__ import annotations

import tensorflow as tf

MEANS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9)
WIDTHS = (0.001,) + (0.1,) * 10
_SMALLEST = 1e-10  # Lower bound of a soft count, to avoid log(0).


def kernel_pooling(
    query_BQD: tf.Tensor,
    document_BKD: tf.Tensor,
    is_query_BQ: tf.Tensor,
    is_document_BK: tf.Tensor,
    means: tuple[float, ...] = MEANS,
    widths: tuple[float, ...] = WIDTHS,
) -> tf.Tensor:
    """Computes kernel pooling features of a query and a document.

    Args:
      query_BQD: token vectors of the query, float [B, Q, D].
      document_BKD: token vectors of the document, float [B, K, D].
      is_query_BQ: bool [B, Q], False for query tokens to ignore, such as padding.
      is_document_BK: bool [B, K], False for document tokens to ignore.
      means: mean μ of each kernel, in cosine similarity.
      widths: standard deviation σ of each kernel.

    Returns:
      Log soft term frequencies, float32 [B, number of kernels].
    """
    query_BQD = tf.math.l2_normalize(tf.cast(query_BQD, tf.float32), axis=-1)
    document_BKD = tf.math.l2_normalize(tf.cast(document_BKD, tf.float32), axis=-1)
    similarity_BQK1 = tf.matmul(query_BQD, document_BKD, transpose_b=True)[..., None]
    kernel_BQKk = tf.exp(-tf.square(similarity_BQK1 - means) / (2 * tf.square(tf.constant(widths))))
    kernel_BQKk *= tf.cast(is_document_BK, tf.float32)[:, None, :, None]
    log_count_BQk = tf.math.log(tf.maximum(tf.reduce_sum(kernel_BQKk, axis=2), _SMALLEST))
    return tf.reduce_sum(log_count_BQk * tf.cast(is_query_BQ, tf.float32)[..., None], axis=1)
