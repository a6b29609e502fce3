"""Relative segment encoding: the segment term of the attention scores."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.modeling.kernels.attention import segment_term
from official.xlnet.modeling.kernels.xla_kernels import fused
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import GuardedLayer, keras


@keras.utils.register_keras_serializable(package="xlnet")
class RelativeSegmentEncoding(GuardedLayer):
    """The segment term of a query row's scores with keys of another segment (paper, section 2.5).

        term(i) = (q_i + r_s)·(seg_different - seg_same) / √H

    The paper adds (q_i + r_s)·seg_same to the scores with keys of the same segment and
    (q_i + r_s)·seg_different to the others. Softmax ignores a
    constant that is added to all scores of a row, so their difference is enough.

    Args:
      num_heads: number of attention heads, N.
      d_head: width of an attention head, H.
      init_std: standard deviation of the normal initializer.

    Call arguments:
      query: [B, N, X, H], query projections of X rows.
      bias: [N, H], r_s.
      training: whether gradients will be asked for: the backward pass then recomputes the layer
        instead of keeping what lies in between.

    Returns:
      [B, N, X].

    Example:
      >>> layer = RelativeSegmentEncoding(num_heads=2, d_head=4)
      >>> layer(tf.zeros([3, 2, 5, 4]), tf.zeros([2, 4])).shape
      TensorShape([3, 2, 5])
    """

    def __init__(self, num_heads: int, d_head: int, init_std: float = 0.02, **kwargs):
        super().__init__(**kwargs)
        self.num_heads, self.d_head, self.init_std = num_heads, d_head, init_std

    def build(self, input_shape=None):
        self.segment_embedding = self.add_weight(
            name="segment_embedding",
            shape=[2, self.num_heads, self.d_head],  # Same segment, different segment.
            initializer=normal(self.init_std),
        )
        super().build(input_shape)

    def call(self, query: tf.Tensor, bias: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        different_NH = self.segment_embedding[1] - self.segment_embedding[0]
        kernel: Callable = fused if training else functools.partial
        return kernel(segment_term, self.d_head)(query, tf.cast(bias, query.dtype), different_NH)
