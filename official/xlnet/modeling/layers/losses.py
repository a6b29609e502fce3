"""Cross entropy of language modeling and of classification."""

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


def label_cross_entropy(logits_UC: tf.Tensor, label_U: tf.Tensor, smoothing: float) -> tf.Tensor:
    """Cross entropy of softmax(logits) with smoothed labels, in nats.

    The target distribution is 1 - ε on the label plus ε / C on each of the C classes.

    Args:
      logits_UC: float32 [U, C].
      label_U: int [U], in [0, C); another label is an error, or not a number on a device.
      smoothing: ε, in [0, 1).

    Returns:
      float32 [U].
    """
    label_U = tf.cast(label_U, tf.int32)
    loss_U = tf.nn.sparse_softmax_cross_entropy_with_logits(label_U, logits_UC)
    if not smoothing:
        return loss_U
    mean_U = -tf.reduce_mean(tf.nn.log_softmax(logits_UC), axis=-1)
    return (1 - smoothing) * loss_U + smoothing * mean_U
