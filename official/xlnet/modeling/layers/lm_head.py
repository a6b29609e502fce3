"""The language-model head: tied to the word embedding, plus one bias per word piece."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.modeling.ops.shapes import sizes


@tf_keras.utils.register_keras_serializable(package="xlnet")
class LMHead(tf_keras.layers.Layer):
    """logits = g·Eᵀ + bias, float32.

    Args:
      vocab_size: V.
    """

    def __init__(self, vocab_size: int, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size

    def build(self, input_shape=None):
        self.bias = self.add_weight("bias", [self.vocab_size], initializer="zeros")
        super().build(input_shape)

    def call(self, query_BPD: tf.Tensor, embedding_VD: tf.Tensor) -> tf.Tensor:
        """[B, P, D] and the word embedding [V, D] → float32 [B, P, V]."""
        embedding_VD = tf.cast(embedding_VD, query_BPD.dtype)
        _, num_targets, width = sizes(query_BPD)
        logits = tf.matmul(tf.reshape(query_BPD, [-1, width]), embedding_VD, transpose_b=True)
        logits = tf.cast(logits, tf.float32) + tf.cast(self.bias, tf.float32)
        return tf.reshape(logits, [-1, num_targets, self.vocab_size])

    def get_config(self):
        return {**super().get_config(), "vocab_size": self.vocab_size}
