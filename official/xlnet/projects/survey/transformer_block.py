"""The transformer block of BERT, GPT and GPT-2: attention of one stream, and feed-forward.

Attributes and layers are called as in `official.nlp.modeling.layers.TransformerEncoderBlock`, so
that checkpoints are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.modeling.kernels.matrix_products import Multiplier, product
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.kernels.stateless_dropout import dropout, dropout_seed_of_call, fold_in
from official.xlnet.modeling.layers.feed_forward import ACTIVATIONS
from official.xlnet.modeling.ops.initializers import build_layers, truncated_normal
from official.xlnet.modeling.ops.keras import Layer, keras
from official.xlnet.modeling.ops.shapes import sizes

# The dropout seed of each part of a block is fold_in(seed of the block, one of these).
PROBABILITIES, ATTENTION, FEED_FORWARD = range(3)


def norm(name: str) -> keras.layers.Layer:
    """Creates a layer normalization, in float32."""
    return keras.layers.LayerNormalization(epsilon=1e-12, dtype="float32", name=name)


class Projection(Layer):
    """y = x · kernel + bias, of vectors.

    Args:
      shape: shape of the kernel: the axes of x, then the axes of y. In x and y they are merged.
      init_std: standard deviation of the truncated normal initializer.
      num_inputs: number of axes of x in the shape.
    """

    def __init__(self, shape: Sequence[int], init_std: float, num_inputs: int = 1, **kwargs):
        super().__init__(**kwargs)
        self.shape, self.init_std, self.num_inputs = list(shape), init_std, num_inputs

    def build(self, input_shape=None):
        self.kernel = self.add_weight(
            name="kernel", shape=self.shape, initializer=truncated_normal(self.init_std)
        )
        self.bias = self.add_weight(
            name="bias", shape=self.shape[self.num_inputs :], initializer="zeros"
        )
        super().build(input_shape)

    def call(self, x_BTI: tf.Tensor) -> tf.Tensor:
        """[B, T, I] → [B, T, O]."""
        kernel = self.kernel
        if not isinstance(kernel, Multiplier):
            kernel = tf.reshape(kernel, [math.prod(self.shape[: self.num_inputs]), -1])
        return tf.nn.bias_add(product(x_BTI, kernel), tf.reshape(self.bias, [-1]))


class SelfAttention(Layer):
    """Scaled dot-product attention: softmax(q·kᵀ / √H)·v of N heads, projected to D.

    Args:
      num_heads: N.
      width: D.
      dropout: dropout rate of the probabilities.
      init_std: standard deviation of the initial kernels.
      output_std: standard deviation of the initial kernel of the output.
    """

    def __init__(
        self,
        num_heads: int,
        width: int,
        dropout: float,
        init_std: float,
        output_std: float,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.dropout = num_heads, dropout
        heads, policy = [num_heads, width // num_heads], self.dtype_policy
        into = [width, *heads]
        self._query_dense = Projection(into, init_std, dtype=policy, name="query")
        self._key_dense = Projection(into, init_std, dtype=policy, name="key")
        self._value_dense = Projection(into, init_std, dtype=policy, name="value")
        self._output_dense = Projection(
            [*heads, width], output_std, num_inputs=2, dtype=policy, name="attention_output"
        )

    def build(self, input_shape):
        build_layers(self._query_dense, self._key_dense, self._value_dense, self._output_dense)
        super().build(input_shape)

    def call(self, hidden_BTD, can_attend_BTT, dropout_seed=None):
        """The change [B, T, D] of the hidden states, and the probabilities [B, N, T, T]."""
        _, num_tokens, width = sizes(hidden_BTD)
        shape = [-1, num_tokens, self.num_heads, width // self.num_heads]
        query_BNTH, key_BNTH, value_BNTH = (
            tf.transpose(tf.reshape(dense(hidden_BTD), shape), [0, 2, 1, 3])
            for dense in (self._query_dense, self._key_dense, self._value_dense)
        )
        scores_BNTT = multiply(query_BNTH * shape[-1] ** -0.5, key_BNTH, transpose_b=True)
        dtype = scores_BNTT.dtype
        hidden = dtype.min if dtype == tf.float16 else -1e9
        scores_BNTT += hidden * (1 - tf.cast(can_attend_BTT, dtype))[:, None]
        weights_BNTT = tf.nn.softmax(scores_BNTT)
        dropped_BNTT = dropout(weights_BNTT, self.dropout, dropout_seed)
        attended_BTNH = tf.transpose(multiply(dropped_BNTT, value_BNTH), [0, 2, 1, 3])
        attended_BTD = tf.reshape(attended_BTNH, [-1, num_tokens, width])
        return self._output_dense(attended_BTD), weights_BNTT


class TransformerEncoderBlock(Layer):
    """One layer of BERT and GPT; with `norm_first`, of GPT-2.

        h = norm(h + attention(h));   h = norm(h + feed_forward(h))
        h = h + attention(norm(h));   h = h + feed_forward(norm(h))

    Args:
      num_heads: number of attention heads, N.
      d_inner: width of the feed-forward network's inner layer, F.
      activation: a key of `ACTIVATIONS`.
      dropout: dropout rate after the feed-forward network.
      dropatt: dropout rate of attention probabilities, and after attention.
      init_std: standard deviation of the initial kernels.
      output_scale: what it is multiplied by for the kernels whose products are added to h.
      norm_first: whether layer normalization comes before each part.
    """

    def __init__(
        self,
        num_heads: int,
        d_inner: int,
        activation: str,
        dropout: float,
        dropatt: float,
        init_std: float,
        output_scale: float = 1.0,
        norm_first: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads, self.d_inner, self.activation = num_heads, d_inner, activation
        self.dropout, self.dropatt, self.norm_first = dropout, dropatt, norm_first
        self.init_std, self.output_std = init_std, output_scale * init_std

    def build(self, input_shape):
        width, std, dtype = input_shape[-1], self.init_std, self.dtype_policy
        self._attention_layer = SelfAttention(
            self.num_heads,
            width,
            self.dropatt,
            std,
            self.output_std,
            name="self_attention",
            dtype=dtype,
        )
        self._attention_layer_norm = norm("self_attention_layer_norm")
        self._intermediate_dense = Projection(
            [width, self.d_inner], std, name="intermediate", dtype=dtype
        )
        self._output_dense = Projection(
            [self.d_inner, width], self.output_std, name="output", dtype=dtype
        )
        self._output_layer_norm = norm("output_layer_norm")
        build_layers(
            self._attention_layer,
            self._attention_layer_norm,
            self._intermediate_dense,
            input_shape=input_shape,
        )
        build_layers(self._output_dense, self._output_layer_norm, input_shape=input_shape)
        super().build(input_shape)

    def call(self, hidden_BTD, can_attend_BTT, training=None, dropout_seed=None):
        """The hidden states [B, T, D] after the block, and the attention probabilities."""
        seed = dropout_seed_of_call(training, dropout_seed)
        inputs_BTD, dtype = hidden_BTD, hidden_BTD.dtype
        if self.norm_first:
            inputs_BTD = tf.cast(self._attention_layer_norm(hidden_BTD), dtype)
        attended_BTD, weights_BNTT = self._attention_layer(
            inputs_BTD, can_attend_BTT, dropout_seed=fold_in(seed, PROBABILITIES)
        )
        hidden_BTD += dropout(attended_BTD, self.dropatt, fold_in(seed, ATTENTION))
        if not self.norm_first:  # Stays float32 up to the next one.
            hidden_BTD = self._attention_layer_norm(hidden_BTD)
        inputs_BTD = self._output_layer_norm(hidden_BTD) if self.norm_first else hidden_BTD
        inner_BTF = self._intermediate_dense(tf.cast(inputs_BTD, dtype))
        changed_BTD = self._output_dense(ACTIVATIONS[self.activation](inner_BTF))
        changed_BTD = dropout(changed_BTD, self.dropout, fold_in(seed, FEED_FORWARD))
        hidden_BTD += tf.cast(changed_BTD, hidden_BTD.dtype)
        if not self.norm_first:
            hidden_BTD = self._output_layer_norm(hidden_BTD)
        return tf.cast(hidden_BTD, dtype), weights_BNTT
