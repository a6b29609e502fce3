"""The position-wise feed-forward part of a block."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.kernels.matrix_products import inner_width, product
from official.xlnet.modeling.kernels.stateless_dropout import dropout, dropout_seed_of_call
from official.xlnet.modeling.kernels.xla_kernels import fused
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import ConfiguredLayer, keras


def gelu_tanh(x: tf.Tensor) -> tf.Tensor:
    """The tanh form of GELU, which XLNet's and BERT's own code compute."""
    return tf.nn.gelu(x, approximate=True)


def gelu_exact(x: tf.Tensor) -> tf.Tensor:
    """The exact form of GELU, which HF calls "gelu"."""
    return tf.nn.gelu(x, approximate=False)


ACTIVATIONS = {"gelu": gelu_tanh, "gelu_exact": gelu_exact, "relu": tf.nn.relu}


@keras.utils.register_keras_serializable(package="xlnet")
class FeedForward(ConfiguredLayer):
    """Position-wise feed-forward network: dropout(activation(x W1 + b1)) W2 + b2.

    The dropout of the residual follows in `ResidualNorm`.

    Args:
      d_inner: width of the inner layer, F.
      activation: a key of `ACTIVATIONS`.
      dropout: dropout rate after the activation.
      init_std: standard deviation of the normal initializer.

    Call arguments:
      hidden_states: [B, X, D].
      training: whether dropout is applied.
      dropout_seed: int32 [2], makes dropout a pure function of it. Default: a random seed.

    Returns:
      [B, X, D].

    Example:
      >>> FeedForward(d_inner=16)(tf.zeros([2, 5, 8])).shape
      TensorShape([2, 5, 8])
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
            name="inner_kernel", shape=[d_model, self.d_inner], initializer=normal(self.init_std)
        )
        self.inner_bias = self.add_weight(
            name="inner_bias", shape=[self.d_inner], initializer="zeros"
        )
        self.outer_kernel = self.add_weight(
            name="outer_kernel", shape=[self.d_inner, d_model], initializer=normal(self.init_std)
        )
        self.outer_bias = self.add_weight(name="outer_bias", shape=[d_model], initializer="zeros")
        super().build(input_shape)

    def call(
        self,
        hidden_states: tf.Tensor,
        training: bool | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        seed = dropout_seed_of_call(training, dropout_seed)
        kernels, bias_F = [self.inner_kernel, self.outer_kernel], self.inner_bias
        extra = inner_width(self.d_inner, hidden_states.dtype) - self.d_inner if training else 0
        if extra:  # Zeros, whose activations and gradients are zeros too.
            paddings = [[0, 0], [0, extra]], [[0, extra], [0, 0]]
            kernels = [_padded(*pair) for pair in zip(kernels, paddings, strict=True)]
            bias_F = tf.pad(bias_F, [[0, extra]])
        inner_BXF = tf.nn.bias_add(product(hidden_states, kernels[0]), bias_F)
        if training:
            inner_BXF = fused(_activate, self.activation, self.dropout)(inner_BXF, seed)
        else:
            inner_BXF = ACTIVATIONS[self.activation](inner_BXF)
        return tf.nn.bias_add(product(inner_BXF, kernels[1]), self.outer_bias)


def _padded(kernel, paddings: list[list[int]]):
    return kernel.padded(paddings) if hasattr(kernel, "padded") else tf.pad(kernel, paddings)


def _activate(activation: str, rate: float, x_BXF, seed):
    return dropout(ACTIVATIONS[activation](x_BXF), rate, seed)
