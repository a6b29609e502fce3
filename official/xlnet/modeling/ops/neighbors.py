"""Attention that starts at neighbors: each head copies its share of one neighboring token.

The neighbors are the token before, after, two before, two after, …; training then leaves the loss
of the unigram baseline within tens of steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.ops.initializers import normal, register_attention_init

# Frequencies above this, in radians per token, tell neighboring distances apart.
_LOWEST_FREQUENCY = 0.1
# Excess of a head's score at its distance over the score one token further.
_MARGIN = 2.0


@register_attention_init("neighbors")
def neighbors(init_std: float, width: int) -> dict[str, Callable]:
    """Initializers of attention whose heads start at neighbors; N·H must be D.

    Args:
      init_std: standard deviation of the noise.
      width: width of the hidden states, D.
    """
    return {
        "value_kernel": head_selection,
        "position_kernel": functools.partial(neighbor_kernel, init_std),
        "output_kernel": head_selection,
        "position_bias": functools.partial(neighbor_bias, init_std, width),
    }


def head_selection(shape, dtype=None, **kwargs) -> tf.Tensor:
    """Value or output kernel [D, N, H]: head n holds elements n·H … n·H + H - 1.

    With it in both, a head that attends to one token adds that token's elements to its row.
    """
    width, num_heads, d_head = shape
    return tf.reshape(tf.eye(width, num_heads * d_head, dtype=dtype or tf.float32), shape)


def neighbor_kernel(stddev: float, shape, dtype=None, **kwargs) -> tf.Tensor:
    """Position kernel [D, N, H] of heads that attend to a neighbor.

    Normal noise, plus a selection: every head reads sine and cosine of H/2 frequencies,

        r_d = [sin(f_1 d), cos(f_1 d), sin(f_2 d), cos(f_2 d), …]

    With the bias of `neighbor_bias`, r_r·r_d = Σ_i s·cos(f_i (d - d_n)) is greatest at head n's own
    distance d_n and falls off on both sides, so that the nearest visible token wins where the
    neighbor itself is hidden.

    Args:
      stddev: standard deviation of the noise.
      shape: [D, N, H].
      dtype: type of the kernel.
      **kwargs: further arguments that Keras gives initializers.
    """
    width, num_heads, d_head = shape
    selection_DNH = np.zeros([width, num_heads, d_head])
    for place, index in enumerate(_frequency_indices(width, d_head)):
        selection_DNH[index, :, 2 * place] = 1.0  # Sines come first in D.
        selection_DNH[width // 2 + index, :, 2 * place + 1] = 1.0
    noise_DNH = normal(stddev)(shape, dtype, **kwargs)
    return noise_DNH + tf.cast(selection_DNH, noise_DNH.dtype)


def neighbor_bias(stddev: float, width: int, shape, dtype=None, **kwargs) -> tf.Tensor:
    """Position bias r_r [N, H] of heads that attend to a neighbor.

    Head n of N starts at distance d_n = 1, -1, 2, -2, …: the token before, the token after, and
    so on. See `neighbor_kernel`.

    Args:
      stddev: standard deviation of the noise.
      width: width of the hidden states, D.
      shape: [N, H].
      dtype: type of the bias.
      **kwargs: further arguments that Keras gives initializers.
    """
    num_heads, d_head = shape
    indices = _frequency_indices(width, d_head)
    frequency_C = _frequency(indices, width)
    # Scores are divided by √H.
    scale = _MARGIN * np.sqrt(d_head) / np.sum(1 - np.cos(frequency_C))
    bias_NH = np.zeros([num_heads, d_head])
    for head in range(num_heads):
        distance = (1 + head // 2) * (-1) ** head
        bias_NH[head, 0 : 2 * len(indices) : 2] = scale * np.sin(frequency_C * distance)
        bias_NH[head, 1 : 2 * len(indices) : 2] = scale * np.cos(frequency_C * distance)
    noise_NH = normal(stddev)(shape, dtype, **kwargs)
    return noise_NH + tf.cast(bias_NH, noise_NH.dtype)


def _frequency(index, width: int):
    """Frequency of an element of the sinusoids (`layers.relative_position`), radians per token."""
    return 10000.0 ** (-2 * np.asarray(index) / width)


def _frequency_indices(width: int, d_head: int) -> np.ndarray:
    """At most H/2 frequencies, evenly spaced among those above the lowest one of use."""
    high = np.flatnonzero(_frequency(np.arange(width // 2), width) > _LOWEST_FREQUENCY)
    num_frequencies = min(d_head // 2, len(high))
    return high[np.linspace(0, len(high) - 1, num_frequencies).round().astype(int)]
