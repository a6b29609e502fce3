"""Losses of language modeling."""

from __future__ import annotations

import tensorflow as tf


def cross_entropy_sum(logits_BPV: tf.Tensor, labels_BP: tf.Tensor, mask_BP: tf.Tensor) -> tf.Tensor:
    """Sum of -log softmax(logits)[label] over the targets that `mask` keeps, in nats.

    Args:
      logits_BPV: float32 [B, P, V].
      labels_BP: int32 [B, P], in [0, V).
      mask_BP: float32 [B, P], 1 for real targets, 0 for unused slots.

    Returns:
      float32 scalar; divide by sum(mask) for the mean.
    """
    loss_BP = tf.nn.sparse_softmax_cross_entropy_with_logits(labels_BP, logits_BPV)
    return tf.reduce_sum(loss_BP * mask_BP)
