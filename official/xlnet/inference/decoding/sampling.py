"""Choosing the next token from its logits: greedy, temperature, top-k, top-p."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.files.schema import Range, check_fields

_LEAST = tf.float32.as_numpy_dtype(1.2e-38)  # Smaller positive numbers may count as 0.


@dataclasses.dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    Attributes:
      temperature: logits are divided by it; 0 always takes the most probable token.
      top_k: only the k most probable tokens are drawn; 0: all.
      top_p: only the most probable tokens are drawn, as few as together have at least this
        probability; 1: all. The most probable token always remains.
      seed: of the draws. What a text gets depends on its place in the list, and not on
        the texts in the other places.
    """

    temperature: Annotated[float, Range(0)] = 1.0
    top_k: Annotated[int, Range(0, 2**31 - 1)] = 0
    top_p: Annotated[float, Range(0, 1, open_low=True)] = 1.0
    seed: Annotated[int, Range(0)] = 0

    def __post_init__(self):
        check_fields(self, ConfigError)


def choose(
    logits_BV: tf.Tensor,
    uniform_B: tf.Tensor,
    temperature: tf.Tensor,
    top_k: tf.Tensor,
    top_p: tf.Tensor,
) -> tf.Tensor:
    """Draws one token a row by inverting the distribution function of the sorted tokens.

    Args:
      logits_BV: float32 [B, V]; -inf where a token is not allowed.
      uniform_B: float32 [B], in [0, 1): the randomness.
      temperature: float32 scalar, above 0.
      top_k: int32 scalar, see `Sampling`.
      top_p: float32 scalar, see `Sampling`.

    Returns:
      int32 [B].
    """
    num_tokens = logits_BV.shape[1]
    sorted_BV, token_BV = tf.math.top_k(logits_BV, k=num_tokens)
    # Divided after the largest is 0, so that no temperature overflows there.
    sorted_BV = (sorted_BV - sorted_BV[:, :1]) / tf.maximum(temperature, _LEAST)
    p_BV = tf.nn.softmax(sorted_BV)
    is_kept_BV = tf.cumsum(p_BV, axis=1, exclusive=True) < tf.maximum(top_p, _LEAST)
    is_kept_BV &= tf.range(num_tokens) < tf.where(top_k > 0, top_k, num_tokens)
    cumulative_BV = tf.cumsum(tf.where(is_kept_BV & (p_BV > 0), p_BV, 0.0), axis=1)
    # At rounding's edge the draw must not fall on a token that was left out.
    drawn_BV = cumulative_BV <= uniform_B[:, None] * cumulative_BV[:, -1:]
    rank_B = tf.reduce_sum(tf.cast(drawn_BV & is_kept_BV, tf.int32), axis=1)
    last_B = tf.reduce_sum(tf.cast(is_kept_BV & (p_BV > 0), tf.int32), axis=1) - 1
    rank_B = tf.minimum(rank_B, last_B)
    return tf.gather(token_BV, rank_B, batch_dims=1)
