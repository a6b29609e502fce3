"""A block for every layer: the depth of the Transformer and of XLNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import DEPTHS
from official.xlnet.modeling.ops.keras import ConfiguredLayer, keras
from official.xlnet.modeling.ops.shapes import sizes

# Maps (index of the layer, hidden states [B, X, D]) to the hidden states after its block.
Step = Callable[[int, tf.Tensor], tf.Tensor]


def register_depth(name: str) -> Callable[[type[StackedDepth]], type[StackedDepth]]:
    """Decorator that registers a subclass of `StackedDepth`.

    Args:
      name: value of `model.depth` that selects it.

    Raises:
      ConfigError: a depth is already registered under the name.

    Example:
      >>> @register_depth("reversed")
      ... class ReversedDepth(StackedDepth):
      ...     def blocks(self, new_block, num_layers):
      ...         return super().blocks(new_block, num_layers)[::-1]
    """
    return DEPTHS.register(name)


class DepthOutputs(NamedTuple):
    """Outputs of a depth.

    Attributes:
      hidden_states: [B, X, D], after the last layer.
      num_steps: int32 [B, X], number of blocks that each row went through.
    """

    hidden_states: tf.Tensor
    num_steps: tf.Tensor


@register_depth("stacked")
@keras.utils.register_keras_serializable(package="xlnet")
class StackedDepth(ConfiguredLayer):
    """Each layer has a block of its own:  h_l = block_l(h_{l-1}).

    Call arguments:
      hidden_states: [B, X, D], rows of both streams before the first layer.
      step: runs the block of a layer. In the last layer it may return the last rows alone; then
        so does the depth.
      num_layers: number of layers to run, from the first on.
      is_padding: bool [B, T], True where one of the first T rows holds no token. Default False.
      training: whether costs of the depth are added to the losses (`Layer.losses`).

    Returns:
      `DepthOutputs`.

    Example:
      >>> depth = StackedDepth()
      >>> depth(tf.ones([2, 3, 4]), step=lambda layer, x: (layer + 2) * x, num_layers=2)[0][0, 0, 0]
      <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    def __init__(self, **kwargs):
        # Rows pass through unchanged in any precision.
        super().__init__(autocast=False, **{**kwargs, "dtype": tf.float32})

    @classmethod
    def from_model(cls, model: ModelConfig, name: str) -> StackedDepth:
        """Creates the depth that `model` describes."""
        return cls(name=name)

    def blocks(self, new_block: Callable[..., keras.layers.Layer], num_layers: int) -> Sequence:
        """The block of each layer.

        Args:
          new_block: creates a block, given `name`.
          num_layers: number of layers, L.
        """
        return [new_block(name=f"layer_{layer}") for layer in range(num_layers)]

    def encoded(self, layer: int, hidden_states: tf.Tensor) -> tf.Tensor:
        """Inputs of layer `layer`, which counts from 0."""
        return hidden_states

    def call(
        self,
        hidden_states: tf.Tensor,
        step: Step,
        num_layers: int,
        is_padding: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> DepthOutputs:
        num_steps = tf.fill(sizes(hidden_states)[:2], num_layers)
        for layer in range(num_layers):
            hidden_states = step(layer, self.encoded(layer, hidden_states))
        return DepthOutputs(hidden_states, num_steps)
