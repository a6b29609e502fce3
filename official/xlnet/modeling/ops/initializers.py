"""Creation of weights: normal initialization, as in the TF1 release, and attention's by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from official.xlnet.configs.registry import ATTENTION_INITS
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras

# Initializers are called with a shape and a dtype, as in Keras.
AttentionInit = Callable[[float, int], Mapping[str, Callable]]


def normal(stddev: float, initializer: Callable = keras.initializers.RandomNormal) -> Callable:
    """Creates a normal initializer; sharing one would repeat its values."""
    create = functools.partial(initializer, stddev=stddev)
    # Keras 3 draws the seed of an initializer when it is created, Keras 2 when it is used.
    return (lambda shape, dtype=None: create()(shape, dtype)) if IS_KERAS_3 else create()


def truncated_normal(stddev: float) -> Callable:
    """Creates a normal initializer that is cut at two standard deviations."""
    return normal(stddev, keras.initializers.TruncatedNormal)


def build_layers(*layers: keras.layers.Layer, input_shape: Any = None) -> None:
    """Builds layers, each under its own name, which the names of its variables begin with."""
    for layer in layers:
        with tf.name_scope(layer.name):
            layer.build(input_shape)


def register_attention_init(name: str) -> Callable[[AttentionInit], AttentionInit]:
    """Decorator that registers initial weights of attention.

    The decorated function takes `init_std` and the width D, and returns initializers by the name of
    their weight: `query_kernel`, `key_kernel`, `value_kernel`, `position_kernel`, `output_kernel`
    [D, N, H]; `content_bias`, `position_bias`, `segment_bias` [N, H]. Other weights are normal.

    Args:
      name: value of `model.attention_init` that selects it.

    Raises:
      ConfigError: the name is already registered.

    Example:
      >>> @register_attention_init("zero_positions")
      ... def zero_positions(init_std, width):
      ...     return {"position_kernel": keras.initializers.Zeros()}
    """
    return ATTENTION_INITS.register(name)


@register_attention_init("normal")
def _all_normal(init_std: float, width: int) -> dict[str, Callable]:
    return {}
