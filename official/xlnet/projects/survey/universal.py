"""Depths of the Universal Transformer: one block for all layers, also with halting by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.depth.stacked import (
    DepthOutputs,
    StackedDepth,
    Step,
    register_depth,
)
from official.xlnet.modeling.ops.initializers import normal
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.shapes import sizes
from official.xlnet.projects.survey.settings import UniversalModelConfig


@register_depth("shared")
@keras.utils.register_keras_serializable(package="xlnet")
class SharedDepth(StackedDepth):
    """All layers have the same block:  h_t = block(h_{t-1} + s_t).

    s_t is the step's part of the encoding of Dehghani et al. (2018), section 2.1,

        s_{t,2j} = sin(t / 10000^{2j/D}),  s_{t,2j+1} = cos(t / 10000^{2j/D}),  t = 1, 2, …

    The position's part of it is XLNet's relative position encoding, which enters the attention of
    every step: it means the same in memory, beside padding and in reversed text.

    Args:
      step_encoding: whether s_t is added; without it, h_t = block(h_{t-1}).

    Example:
      >>> depth = SharedDepth(step_encoding=False)
      >>> depth(tf.ones([2, 3, 4]), step=lambda layer, x: 3 * x, num_layers=2)[0][0, 0, 0]
      <tf.Tensor: shape=(), dtype=float32, numpy=9.0>
    """

    def __init__(self, step_encoding: bool = True, **kwargs):
        super().__init__(**kwargs)
        self.step_encoding = step_encoding

    @classmethod
    def from_model(cls, model: ModelConfig, name: str) -> SharedDepth:
        return cls(model.settings(UniversalModelConfig).step_encoding, name=name)

    def blocks(self, new_block: Callable[..., keras.layers.Layer], num_layers: int) -> Sequence:
        return [new_block(name="shared_layer")] * num_layers

    def encoded(self, layer: int, hidden_states: tf.Tensor) -> tf.Tensor:
        """Hidden states with the encoding of step `layer`, which counts from 0."""
        if not self.step_encoding:
            return hidden_states
        encoding_D = tf.constant(step_encoding(layer + 1, hidden_states.shape[-1]))
        return hidden_states + tf.cast(encoding_D, hidden_states.dtype)


def step_encoding(step: int, width: int) -> np.ndarray:
    """Sine and cosine of a step in turn, float32 [D].

    Args:
      step: t, from 1.
      width: D, an even number.

    Example:
      >>> step_encoding(1, 2).round(3)
      array([0.841, 0.54 ], dtype=float32)
    """
    angle = step / 10000.0 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angle), np.cos(angle)], axis=1).reshape(width).astype(np.float32)


@register_depth("adaptive")
@keras.utils.register_keras_serializable(package="xlnet")
class AdaptiveDepth(SharedDepth):
    """Adaptive computation time (Graves, 2016) over the steps of one shared block.

    Each row halts by itself, after N steps. With u_t = h_{t-1} + s_t,

        p_t = sigmoid(w · u_t + b)
        N   = min { n : p_1 + … + p_n >= threshold }, and at most the number of layers
        R   = 1 - (p_1 + … + p_{N-1})
        output = p_1 h_1 + … + p_{N-1} h_{N-1} + R h_N

    A row that has halted keeps h_N, which other rows go on attending to. Blocks compute all rows
    in all steps; what halting changes is the result. In training the ponder cost, the mean of
    N + R over rows that are not padding, is added to the losses.

    Args:
      step_encoding: whether s_t is added; see `SharedDepth`.
      threshold: sum of probabilities at which a row halts, 1 - ε of Graves.
      ponder_weight: weight of the ponder cost, τ of Graves.
      init_std: standard deviation of the initial w. b starts at 1.

    Example:
      >>> depth = AdaptiveDepth(threshold=0.99)
      >>> depth(tf.zeros([2, 3, 4]), step=lambda layer, x: x, num_layers=4).num_steps
      <tf.Tensor: shape=(2, 3), dtype=int32, numpy=
      array([[2, 2, 2],
             [2, 2, 2]], dtype=int32)>
    """

    def __init__(
        self,
        step_encoding: bool = True,
        threshold: float = 0.99,
        ponder_weight: float = 0.01,
        init_std: float = 0.02,
        **kwargs,
    ):
        super().__init__(step_encoding, **kwargs)
        self.threshold, self.ponder_weight = threshold, ponder_weight
        self.init_std = init_std

    @classmethod
    def from_model(cls, model: ModelConfig, name: str) -> AdaptiveDepth:
        settings = model.settings(UniversalModelConfig)
        sizes = settings.halting_threshold, settings.ponder_weight, settings.init_std
        return cls(settings.step_encoding, *sizes, name=name)

    def build(self, input_shape):
        width = [input_shape[-1]]
        self.halting_kernel = self.add_weight(
            name="halting_kernel", shape=width, initializer=normal(self.init_std)
        )
        self.halting_bias = self.add_weight(name="halting_bias", shape=[], initializer="ones")
        super().build(input_shape)

    def call(
        self,
        hidden_states: tf.Tensor,
        step: Step,
        num_layers: int,
        is_padding: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> DepthOutputs:
        shape, kernel_D = sizes(hidden_states)[:2], tf.convert_to_tensor(self.halting_kernel)
        total_BX, remainder_BX = tf.zeros(shape), tf.zeros(shape)
        num_steps_BX, is_running_BX = tf.zeros(shape, tf.int32), tf.ones(shape, tf.bool)
        output_BXD = tf.zeros_like(hidden_states) if num_layers else hidden_states
        for layer in range(num_layers):
            inputs_BXD = self.encoded(layer, hidden_states)
            is_last = layer == num_layers - 1
            logits_BX = tf.einsum("bxd,d->bx", tf.cast(inputs_BXD, tf.float32), kernel_D)
            probability_BX = tf.sigmoid(logits_BX + self.halting_bias)
            halts_BX = is_running_BX & (is_last | (total_BX + probability_BX >= self.threshold))
            weight_BX = tf.where(halts_BX, 1 - total_BX, probability_BX)
            weight_BX = tf.where(is_running_BX, weight_BX, 0.0)
            remainder_BX += tf.where(halts_BX, weight_BX, 0.0)
            num_steps_BX += tf.cast(is_running_BX, tf.int32)
            total_BX += weight_BX

            states_BYD = step(layer, inputs_BXD)
            first = sizes(inputs_BXD)[1] - sizes(states_BYD)[1]
            weight_BY1 = tf.cast(weight_BX[:, first:, None], states_BYD.dtype)
            output_BXD = output_BXD[:, first:] + weight_BY1 * states_BYD
            hidden_states = tf.where(
                is_running_BX[:, first:, None], states_BYD, hidden_states[:, first:]
            )
            is_running_BX &= ~halts_BX
        if training:
            ponder_BX = tf.cast(num_steps_BX, tf.float32) + remainder_BX
            self.add_loss(self.ponder_weight * _mean(ponder_BX, is_padding))
        return DepthOutputs(output_BXD, num_steps_BX)


def _mean(values_BX: tf.Tensor, is_padding_BT: tf.Tensor | None) -> tf.Tensor:
    """The mean over rows that hold a token or a target; 0 where there is none."""
    if is_padding_BT is None:
        return tf.reduce_mean(values_BX)
    num_targets = sizes(values_BX)[1] - sizes(is_padding_BT)[1]
    is_real_BX = tf.pad(~is_padding_BT, [[0, 0], [0, num_targets]], constant_values=True)
    weights_BX = tf.cast(is_real_BX, values_BX.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(values_BX * weights_BX), tf.reduce_sum(weights_BX))
