"""The Keras of this package: Keras 3, or tf_keras (Keras 2); and what our layers need of it.

Everything else imports `keras` from here. As for `tf.keras`, it is tf_keras if the environment
variable `TF_USE_LEGACY_KERAS` is 1, and Keras 3 if it is 0 or not set. If it is not set, tf_keras
is also taken where it was imported before this module, as by the Model Garden.
"""

# ruff: noqa: F401  Other modules import the parts of the Keras that is chosen.

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from official.xlnet.errors import ConfigError, how_to_install, require_config
from official.xlnet.modeling.ops import forked_processes  # It registers what is done after a fork.
from official.xlnet.runtime.start.native_logs import hide_below_errors

hide_below_errors(os.path.dirname(tf.__file__))

_LEGACY = os.environ.get("TF_USE_LEGACY_KERAS")
IS_KERAS_3 = _LEGACY not in ("1", "true", "True") and bool(_LEGACY or "tf_keras" not in sys.modules)
if not IS_KERAS_3 and importlib.util.find_spec("tf_keras") is None:
    raise ConfigError(
        "TF_USE_LEGACY_KERAS: expected it not to be set, or tf-keras to be installed "
        f"({how_to_install('keras2')}), got {_LEGACY}"
    )
if TYPE_CHECKING or not IS_KERAS_3:
    import tf_keras as keras
    from tensorflow import Variable, name_scope
    from tf_keras.layers import Dense, Embedding, Layer
    from tf_keras.mixed_precision import LossScaleOptimizer
    from tf_keras.optimizers import AdamW

    from official.xlnet.modeling.ops.keras_2 import (
        Metric,
        apply_sums,
        is_building,
        scaled_loss,
        sum_before_clipping,
        tf_variables,
        unscaled_gradients,
    )
else:
    import keras
    from keras import Variable, name_scope

    from official.xlnet.modeling.ops.keras_3 import (
        AdamW,
        Dense,
        Embedding,
        Layer,
        LossScaleOptimizer,
        Metric,
        apply_sums,
        is_building,
        scaled_loss,
        sum_before_clipping,
        tf_variables,
        unscaled_gradients,
    )


_OTHER = "tf_keras" if IS_KERAS_3 else "keras"  # The package whose objects do not mix with ours.
# Advice in errors about an object of the other package.
ADVICE = (
    "this package uses Keras 3 in this process: use keras in place of tf_keras, or set "
    "TF_USE_LEGACY_KERAS=1 before TensorFlow is imported"
    if IS_KERAS_3
    else "this package uses tf_keras in this process, as TF_USE_LEGACY_KERAS=1 is set or tf_keras "
    "was imported before: use tf_keras in place of keras"
)


def require_same_keras(inputs: Any) -> None:
    """Raises `ConfigError` where a layer is called by the other Keras.

    It does so with its symbolic tensors, or inside the call of a subclassed model, which neither
    trains nor saves the weights of layers that it does not know.
    """
    if any(type(x).__module__.startswith(f"{_OTHER}.") for x in tf.nest.flatten(inputs)):
        raise ConfigError(
            f"expected inputs of {keras.__name__}, got a KerasTensor of {_OTHER}; {ADVICE}"
        )
    if _is_called_by_the_other():
        raise ConfigError(
            f"expected a model of {keras.__name__} around this layer, got a call by a model or "
            f"layer of {_OTHER}, which would not train or save the weights; {ADVICE}"
        )


def _is_called_by_the_other() -> bool:
    if IS_KERAS_3:
        utils = sys.modules.get("tf_keras.src.engine.base_layer_utils")
        return utils is not None and utils.call_context().in_call
    state = sys.modules.get("keras.src.backend.common.global_state")
    return state is not None and state.get_global_attribute("current_call_ctx") is not None


def require_no_other_keras(where: str, values: Any) -> None:
    """Raises `ConfigError` for objects, classes and functions of the other Keras.

    So it does for objects of classes that extend them.

    Args:
      where: names the argument in the message.
      values: any nest of values.
    """
    for x in tf.nest.flatten(values):
        for part in (x, *type(x).__mro__):
            if (getattr(part, "__module__", None) or "").partition(".")[0] == _OTHER:
                name = getattr(part, "__qualname__", type(part).__qualname__)
                raise ConfigError(
                    f"{where}: expected objects of {keras.__name__}, got {part.__module__}.{name}; "
                    f"{ADVICE}"
                )


def require_tf_keras(what: str) -> None:
    """Raises `ConfigError` if the models are of Keras 3, which the Model Garden cannot use."""
    require_config(
        not IS_KERAS_3, "keras", f"tf_keras for {what}: set TF_USE_LEGACY_KERAS=1", "Keras 3"
    )


def is_symbolic(tensor: Any) -> bool:
    """Whether a tensor is a part of the graph of a functional model of Keras 3."""
    return IS_KERAS_3 and keras.backend.is_keras_tensor(tensor)


def with_name(options: dict[str, Any], default: str) -> dict[str, Any]:
    """Returns arguments of a layer with a name, by default numbered as Keras numbers names.

    Args:
      options: the arguments; `name` is optional.
      default: name of the first layer without one; the next ones are `default_1`, `default_2`, …
    """
    if options.get("name") is not None:
        return options
    number = keras.backend.get_uid(default) - 1
    return {**options, "name": f"{default}_{number}" if number else default}


@contextlib.contextmanager
def global_policy(policy: Any) -> Iterator[None]:
    """Context manager of a global precision policy; None leaves the one that is set."""
    before = keras.mixed_precision.global_policy()
    keras.mixed_precision.set_global_policy(policy or before)
    try:
        yield
    finally:
        keras.mixed_precision.set_global_policy(before)


class ConfiguredLayer(Layer):
    """A layer that keeps every argument of its constructor in an attribute of the same name."""

    def get_config(self):
        parts = [part for part in type(self).__mro__ if issubclass(part, ConfiguredLayer)]
        names = {name for part in parts for name in inspect.signature(part.__init__).parameters}
        config = super().get_config()
        for name, value in vars(self).items():
            if name in names:
                config[name] = value
        return config


class GuardedLayer(ConfiguredLayer):
    """A layer that raises `ConfigError` where the other Keras calls it."""

    def __call__(self, *args, **kwargs):
        require_same_keras((args, kwargs))
        if "mask" in kwargs:  # Not Keras' own; the name of earlier versions.
            kwargs["attention_mask"] = kwargs.pop("mask")
        return super().__call__(*args, **kwargs)
