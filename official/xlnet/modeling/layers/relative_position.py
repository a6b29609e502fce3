"""Relative positions: sinusoids of the distances between query rows and keys.

Query row at position i and key column j (memory first, so the key's position is j - M) are
M + i - j apart. The distances of a window run from M + T - 1 (first key, last row) down to
-(T - 1); the table of R = M + 2T - 1 sinusoids is ordered that way, so that

    table row of (i, j) = T - 1 - i + j

Reading right to left negates every distance. sin is odd and cos is even, so the two halves of
the table are projected once, and a reversed row adds the cosine half and subtracts the sine half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import device
from official.xlnet.modeling.kernels.factored_position import FactoredSinusoids
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.modeling.ops.keras import GuardedLayer, keras
from official.xlnet.modeling.ops.shapes import Size, sizes


class Sinusoids(NamedTuple):
    """Sine and cosine of every distance at every frequency.

    Attributes:
      sine: [R, D / 2].
      cosine: [R, D / 2].
    """

    sine: tf.Tensor | np.ndarray
    cosine: tf.Tensor | np.ndarray

    def with_dropout(self, rate: float, sine_seed: tf.Tensor, cosine_seed: tf.Tensor) -> Sinusoids:
        """Drops sinusoids with probability `rate`."""
        return Sinusoids(
            dropout(self.sine, rate, sine_seed), dropout(self.cosine, rate, cosine_seed)
        )


def sinusoids(num_tokens: Size, num_memory: Size, width: int, clamp_len: int = 0) -> Sinusoids:
    """Sine and cosine of every distance at every frequency, float32 [R, D / 2] each.

    Element c of distance d is sin(d / 10000^(2c/D)), and cos of the same (Vaswani et al., 2017;
    Dai et al., *Transformer-XL*, 2019, section 3.3).

    Args:
      num_tokens: number of tokens of a window, T.
      num_memory: number of memory columns, M.
      width: width of the hidden states, D; even.
      clamp_len: distances are clamped to ±clamp_len; 0 leaves them alone.

    Example:
      >>> sine, cosine = sinusoids(num_tokens=2, num_memory=1, width=2)
      >>> sine[:, 0]  # distances 2, 1, 0, -1
      array([ 0.9092974 ,  0.84147096,  0.        , -0.84147096], dtype=float32)
    """
    distance_R = _range(num_memory + num_tokens - 1, -num_tokens, -1)
    if clamp_len:
        clip = np.clip if isinstance(distance_R, np.ndarray) else tf.clip_by_value
        distance_R = clip(distance_R, -clamp_len, clamp_len)
    return _sinusoids(distance_R, width)


def named(encoding: tuple | list) -> tuple:
    """Restores the named fields of an encoding, which a loaded `.keras` file passes as a list."""
    if isinstance(encoding, tuple):
        return encoding
    first, second = encoding
    return Sinusoids(first, second) if first.shape.rank == 2 else FactoredSinusoids(first, second)


@keras.utils.register_keras_serializable(package="xlnet")
class RelativePositionEncoding(GuardedLayer):
    """Sinusoidal encoding of all distances in a window and its memory; see `sinusoids`.

    A constant where the number of tokens is static, else computed in the graph.

    Args:
      clamp_len: distances are clamped to ±clamp_len; 0 leaves them alone.

    Call arguments:
      hidden_states: [B, T, D]; only T and D are used.
      memory: [B, M, D], hidden states of earlier tokens. Default: none.

    Returns:
      `Sinusoids` of the R = M + 2T - 1 distances from M + T - 1 down to -(T - 1); on a TPU, and if
      distances are not clamped, `FactoredSinusoids`, from which the same scores follow.

    Example:
      >>> encoding = RelativePositionEncoding()(tf.zeros([3, 2, 8]))
      >>> encoding.sine.shape, encoding.cosine.shape  # distances 1, 0, -1
      (TensorShape([3, 4]), TensorShape([3, 4]))
    """

    def __init__(self, clamp_len: int = 0, **kwargs):
        super().__init__(**kwargs)
        self.clamp_len = clamp_len

    def call(
        self, hidden_states: tf.Tensor, memory: tf.Tensor | None = None
    ) -> Sinusoids | FactoredSinusoids:
        _, num_tokens, width = sizes(hidden_states)
        num_memory = 0 if memory is None else sizes(memory)[1]
        if device() == "TPU" and not self.clamp_len:  # Clamped distances cannot be factored.
            row_T, key_K = _range(0, num_tokens), _range(-num_memory, num_tokens)
            return FactoredSinusoids.of_positions(
                rows=_sinusoids(row_T, width), keys=_sinusoids(key_K, width)
            )
        table = sinusoids(num_tokens, num_memory, width, self.clamp_len)
        return Sinusoids(*(tf.cast(half, self.compute_dtype) for half in table))


def _range(start: Size, stop: Size, step: int = 1) -> tf.Tensor | np.ndarray:
    """Whole numbers in float64: angles in float32 would lose four digits at large distances."""
    if isinstance(start, int) and isinstance(stop, int):
        return np.arange(start, stop, step, dtype=np.float64)
    return tf.cast(tf.range(start, stop, step), tf.float64)


def _sinusoids(position_R: tf.Tensor | np.ndarray, width: int) -> Sinusoids:
    """Sine and cosine of positions or distances at every frequency, float32 [R, D / 2] each."""
    angle_RC = position_R[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    if isinstance(angle_RC, np.ndarray):
        return Sinusoids(np.sin(angle_RC).astype(np.float32), np.cos(angle_RC).astype(np.float32))
    return Sinusoids(tf.cast(tf.sin(angle_RC), tf.float32), tf.cast(tf.cos(angle_RC), tf.float32))
