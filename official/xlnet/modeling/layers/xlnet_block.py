"""One XLNet layer: attention and feed-forward, each with a residual and a layer norm after it."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from official.xlnet.modeling.layers.feed_forward import FeedForward
from official.xlnet.modeling.layers.relative_attention import RelativeAttention
from official.xlnet.modeling.ops.stateless_dropout import dropout, fold_in
from official.xlnet.modeling.ops.xla_kernels import fused, row_sums

LAYER_NORM_EPSILON = 1e-12


@tf_keras.utils.register_keras_serializable(package="xlnet")
class ResidualNorm(tf_keras.layers.Layer):
    """layer_norm(x + dropout(change)), computed in float32.

    Args:
      dropout: rate on the change.
    """

    def __init__(self, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout

    def build(self, input_shape):
        width = [input_shape[-1]]
        self.gamma = self.add_weight("gamma", width, initializer="ones")
        self.beta = self.add_weight("beta", width, initializer="zeros")
        super().build(input_shape)

    def call(
        self, x_BXD: tf.Tensor, change_BXD: tf.Tensor, seed: tf.Tensor | None = None
    ) -> tf.Tensor:
        """[B, X, D] → [B, X, D]; `seed` int32 [2] switches dropout on."""
        normalize: Callable = functools.partial(_normalize, 0.0)
        if seed is not None:
            normalize = fused(_normalize, self.dropout)
        gamma_D, beta_D = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)
        return normalize(x_BXD, change_BXD, gamma_D, beta_D, seed)

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}


def _normalize(rate: float, x_BXD, change_BXD, gamma_D, beta_D, seed):
    sum_BXD = tf.cast(x_BXD + dropout(change_BXD, rate, seed), tf.float32)
    width = sum_BXD.shape[-1]
    centered = sum_BXD - row_sums(sum_BXD)[..., None] / width
    variance = row_sums(tf.square(centered))[..., None] / width
    normal = centered * tf.math.rsqrt(variance + LAYER_NORM_EPSILON)
    normal = normal * tf.cast(gamma_D, tf.float32) + tf.cast(beta_D, tf.float32)
    return tf.cast(normal, x_BXD.dtype)


@tf_keras.utils.register_keras_serializable(package="xlnet")
class XLNetBlock(tf_keras.layers.Layer):
    """h = norm(h + attention(h)); h = norm(h + feed_forward(h)), for the rows of both streams.

    Args:
      num_heads: N.
      d_head: H.
      d_inner: F.
      activation: see `FeedForward`.
      dropout: rate after projections and feed-forward matrices.
      dropatt: rate on attention probabilities.
      untie_r: whether the layer has its own relative biases.
      init_std: standard deviation of the normal initializer.
      recompute_attention: see `RelativeAttention`.
    """

    def __init__(
        self,
        num_heads: int,
        d_head: int,
        d_inner: int,
        activation: str = "gelu",
        dropout: float = 0.0,
        dropatt: float = 0.0,
        untie_r: bool = True,
        init_std: float = 0.02,
        recompute_attention: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.settings = {
            "num_heads": num_heads,
            "d_head": d_head,
            "d_inner": d_inner,
            "activation": activation,
            "dropout": dropout,
            "dropatt": dropatt,
            "untie_r": untie_r,
            "init_std": init_std,
            "recompute_attention": recompute_attention,
        }
        self.attention = RelativeAttention(
            num_heads, d_head, dropatt, untie_r, init_std, recompute_attention, name="attention"
        )
        self.attention_norm = ResidualNorm(dropout, name="attention_norm")
        self.feed_forward = FeedForward(d_inner, activation, dropout, init_std, name="feed_forward")
        self.feed_forward_norm = ResidualNorm(dropout, name="feed_forward_norm")

    def build(self, input_shape):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            with tf.name_scope(layer.name):
                layer.build(input_shape)
        super().build(input_shape)

    def call(self, rows_BXD: tf.Tensor, seed: tf.Tensor | None = None, **attention) -> tf.Tensor:
        """[B, X, D] → [B, X, D].

        Args:
          rows_BXD: rows of both streams.
          seed: int32 [2] switches dropout on.
          **attention: further arguments of `RelativeAttention.call`.
        """
        seeds = [None] * 4 if seed is None else [fold_in(seed, number) for number in range(4)]
        attended = self.attention(rows_BXD, seed=seeds[0], **attention)
        rows_BXD = self.attention_norm(rows_BXD, attended, seed=seeds[1])
        changed = self.feed_forward(rows_BXD, seed=seeds[2])
        return self.feed_forward_norm(rows_BXD, changed, seed=seeds[3])

    def get_config(self):
        return {**super().get_config(), **self.settings}
