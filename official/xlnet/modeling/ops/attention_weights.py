"""The weights of one attention layer, by the names that the equations give them."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf


class AttentionWeights(NamedTuple):
    """Weights of relative attention (`layers.attention`), in the dtype that is computed in.

    Attributes:
      query: W_q, [D, N, H].
      key: W_k, [D, N, H].
      value: W_v, [D, N, H].
      position: W_r, [D, N, H]; the first half of D projects sines, the second one cosines.
      output: W_o, [D, N, H].
      content_bias: r_w, [N, H].
      position_bias: r_r, [N, H].
      segment_bias: r_s, [N, H].
      segment: the embeddings of "same segment" and "different segment", [2, N, H].
    """

    query: tf.Tensor
    key: tf.Tensor
    value: tf.Tensor
    position: tf.Tensor
    output: tf.Tensor
    content_bias: tf.Tensor
    position_bias: tf.Tensor
    segment_bias: tf.Tensor
    segment: tf.Tensor
