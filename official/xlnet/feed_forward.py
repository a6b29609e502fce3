"""The position-wise feed-forward part of a block."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.dropout import dropout
from official.xlnet.fusion import fused
from official.xlnet.initializer import normal

# XLNet's own code computes the tanh form of GELU; HF's "gelu" is the exact one.
ACTIVATIONS = {
    "gelu": lambda x: tf.nn.gelu(x, approximate=True),
    "gelu_exact": lambda x: tf.nn.gelu(x, approximate=False),
    "relu": tf.nn.relu,
}


@tf_keras.utils.register_keras_serializable(package="xlnet")
class FeedForward(tf_keras.layers.Layer):
    """dropout(activation(x W1 + b1)) W2 + b2; the residual's dropout follows in `ResidualNorm`.

    Args:
      d_inner: F.
      activation: a key of `ACTIVATIONS`.
      dropout: rate after the activation.
      init_std: standard deviation of the normal initializer.
    """

    def __init__(
        self,
        d_inner: int,
        activation: str = "gelu",
        dropout: float = 0.0,
        init_std: float = 0.02,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.d_inner, self.activation = d_inner, activation
        self.dropout, self.init_std = dropout, init_std

    def build(self, input_shape):
        d_model = input_shape[-1]
        self.inner_kernel = self.add_weight(
            "inner_kernel", [d_model, self.d_inner], initializer=normal(self.init_std)
        )
        self.inner_bias = self.add_weight("inner_bias", [self.d_inner], initializer="zeros")
        self.outer_kernel = self.add_weight(
            "outer_kernel", [self.d_inner, d_model], initializer=normal(self.init_std)
        )
        self.outer_bias = self.add_weight("outer_bias", [d_model], initializer="zeros")
        super().build(input_shape)

    def call(self, rows_BXD: tf.Tensor, seed: tf.Tensor | None = None) -> tf.Tensor:
        """[B, X, D] → [B, X, D]; `seed` int32 [2] switches dropout on."""
        inner_BXF = tf.tensordot(rows_BXD, self.inner_kernel, axes=1)
        inner_BXF = tf.nn.bias_add(inner_BXF, self.inner_bias)
        if seed is None:
            inner_BXF = ACTIVATIONS[self.activation](inner_BXF)
        else:
            inner_BXF = fused(_activate, self.activation, self.dropout)(inner_BXF, seed)
        outer_BXD = tf.tensordot(inner_BXF, self.outer_kernel, axes=1)
        return tf.nn.bias_add(outer_BXD, self.outer_bias)

    def get_config(self):
        return {
            **super().get_config(),
            "d_inner": self.d_inner,
            "activation": self.activation,
            "dropout": self.dropout,
            "init_std": self.init_std,
        }


def _activate(activation: str, rate: float, x_BXF, seed):
    return dropout(ACTIVATIONS[activation](x_BXF), rate, seed)
