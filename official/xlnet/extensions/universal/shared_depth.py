"""One block for all layers, told apart by a step encoding: the Universal Transformer's depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.depth.stacked import (
    DepthOutputs,
    StackedDepth,
    Step,
    register_depth,
)


@register_depth("shared")
@tf_keras.utils.register_keras_serializable(package="xlnet")
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
        return cls(model.step_encoding, name=name)

    def blocks(self, new_block: Callable[..., tf_keras.layers.Layer], num_layers: int) -> Sequence:
        return [new_block(name="shared_layer")] * num_layers

    def encoded(self, number: int, hidden_states: tf.Tensor) -> tf.Tensor:
        """Hidden states with the encoding of step `number`, which counts from 0."""
        if not self.step_encoding:
            return hidden_states
        encoding_D = tf.constant(step_encoding(number + 1, hidden_states.shape[-1]))
        return hidden_states + tf.cast(encoding_D, hidden_states.dtype)

    def call(
        self,
        hidden_states: tf.Tensor,
        step: Step,
        num_layers: int,
        is_padding: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> DepthOutputs:
        def encoded_step(number, hidden_states):
            return step(number, self.encoded(number, hidden_states))

        return super().call(hidden_states, encoded_step, num_layers)

    def get_config(self):
        return {**super().get_config(), "step_encoding": self.step_encoding}


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
