"""Layers of tf_keras (Keras 2): their configuration, and a clear error where Keras 3 calls them."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
import tf_keras

from official.xlnet.errors import ConfigError

# What to say wherever an object of Keras 3 turns up.
ADVICE = (
    "tf.keras is Keras 3 in this process: set TF_USE_LEGACY_KERAS=1 before TensorFlow is imported, "
    "or use tf_keras in place of tf.keras"
)


def require_legacy_keras(inputs: Any) -> None:
    """Raises `ConfigError` where a layer of tf_keras is called by Keras 3.

    It does so with its symbolic tensors, or inside the call of a subclassed model, which neither
    trains nor saves the weights of layers that it does not know.
    """
    if any(type(x).__module__.startswith("keras.") for x in tf.nest.flatten(inputs)):
        raise ConfigError(f"expected inputs of tf_keras, got a KerasTensor of Keras 3; {ADVICE}")
    state = sys.modules.get("keras.src.backend.common.global_state")
    if state is not None and state.get_global_attribute("current_call_ctx") is not None:
        raise ConfigError(
            "expected a model of tf_keras around this layer, got a call by a model or layer of "
            f"Keras 3, which would not train or save the weights; {ADVICE}"
        )


def require_no_keras_3(where: str, given: Any) -> None:
    """Raises `ConfigError` for objects, classes and functions of Keras 3, and what extends them.

    Args:
      where: names the argument in the message.
      given: any nest of values.
    """
    for x in tf.nest.flatten(given):
        for part in (x, *type(x).__mro__):
            if (getattr(part, "__module__", None) or "").partition(".")[0] == "keras":
                name = getattr(part, "__qualname__", type(part).__qualname__)
                raise ConfigError(
                    f"{where}: expected objects of tf_keras, got {part.__module__}.{name}; {ADVICE}"
                )


@contextlib.contextmanager
def global_policy(policy: Any) -> Iterator[None]:
    """Context manager of a global precision policy; None leaves the one that is set."""
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(policy or before)
    try:
        yield
    finally:
        tf_keras.mixed_precision.set_global_policy(before)


class ConfiguredLayer(tf_keras.layers.Layer):
    """A layer that keeps every argument of its constructor in an attribute of the same name."""

    def get_config(self):
        parts = [part for part in type(self).__mro__ if issubclass(part, ConfiguredLayer)]
        names = {name for part in parts for name in inspect.signature(part.__init__).parameters}
        own = {name: value for name, value in vars(self).items() if name in names}
        return {**super().get_config(), **own}


class LegacyLayer(ConfiguredLayer):
    """A layer of tf_keras that raises `ConfigError` where Keras 3 calls it."""

    def __call__(self, *args, **kwargs):
        require_legacy_keras((args, kwargs))
        return super().__call__(*args, **kwargs)
