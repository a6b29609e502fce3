"""Next-sentence prediction: does B follow A? XLNet does without it; the ablation compares."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.modeling.ops.initializers import normal


@tf_keras.utils.register_keras_serializable(package="xlnet")
class NextSentence(tf_keras.layers.Layer):
    """logit = w·h_CLS + b, and its binary cross entropy.

    Args:
      init_std: standard deviation of the normal initializer.
    """

    def __init__(self, init_std: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.init_std = init_std

    def build(self, input_shape):
        self.kernel = self.add_weight(
            "kernel", [input_shape[-1]], initializer=normal(self.init_std)
        )
        self.bias = self.add_weight("bias", [], initializer="zeros")
        super().build(input_shape)

    def call(self, content_BTD: tf.Tensor) -> tf.Tensor:
        """Logits float32 [B], from the last position of each row."""
        cls_BD = tf.cast(content_BTD[:, -1], tf.float32)
        return tf.linalg.matvec(cls_BD, tf.cast(self.kernel, tf.float32)) + self.bias

    def loss_sum(self, content_BTD: tf.Tensor, is_next_B: tf.Tensor) -> tf.Tensor:
        """Sum of binary cross entropies over the rows, in nats; `is_next` int32 [B]."""
        labels_B = tf.cast(is_next_B, tf.float32)
        return tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels_B, self(content_BTD)))

    def get_config(self):
        return {**super().get_config(), "init_std": self.init_std}
