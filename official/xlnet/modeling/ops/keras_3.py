"""Layers, metrics, AdamW and loss scaling of Keras 3 that behave as in Keras 2.

Only `keras.py` imports this module. Checkpoints have the same keys with both, so a run that was
begun with one resumes with the other.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.ops.keras_requirements import require_backend, require_version

require_backend(keras.backend.backend())
require_version(keras.__version__)


def is_building() -> bool:
    """Whether Keras calls a layer with placeholders, to create its variables."""
    state = sys.modules["keras.src.backend.common.global_state"]
    return state.get_global_attribute("symbolic_scope") is not None


class _NotQuantized:
    """A layer that `quantize` of a model refuses."""

    path: str

    def quantize(self, mode=None, type_check=True, config=None):
        """Raises `ConfigError`: Keras would quantize the embedding of a network alone."""
        raise ConfigError(
            f"quantize: expected layers of Keras alone, got {self.path!r} of an XLNet encoder: the "
            "command `xlnet export` with --weights=int8 stores its matrices in int8; `filters` of "
            "quantize leaves layers out"
        )


class Layer(_NotQuantized, keras.layers.Layer):
    """A layer that takes any arguments, casts the first alone, and tracks lists of layers."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._convert_input_args, self._allow_non_tensor_positional_args = False, True

    def __call__(self, *args, **kwargs):
        if args:
            inputs = dict(args[0]) if isinstance(args[0], dict) else args[0]
            args = (keras.tree.map_structure(self._converted, inputs), *args[1:])
        return super().__call__(*args, **kwargs)

    def _converted(self, x):
        x = tf.convert_to_tensor(x) if isinstance(x, bool | int | float) else x
        return self.dtype_policy.convert_input(x, self.autocast, self.input_dtype)

    def add_weight(self, *args, name=None, **kwargs):
        weight = super().add_weight(*args, name=name, **kwargs)
        self._track_trackable(weight, name, overwrite=True)  # Not by its attribute.
        return weight

    def _lock_state(self):
        """Does nothing: a built layer can get adapters."""

    def _delete_tracking(self, name):
        self._tracker.untrack(self._lookup_dependency(name))
        super()._delete_tracking(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if isinstance(value, list) and any(isinstance(x, keras.layers.Layer) for x in value):
            tracked = tf.__internal__.tracking.wrap(list(value))
            self._track_trackable(tracked, name, overwrite=True)


class _PublicNames:
    """A layer of Keras 3 whose variables have public names in checkpoints."""

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)  # type: ignore[misc]
        renamed = {}
        for name, child in children.items():
            is_variable = isinstance(child, keras.Variable)
            renamed[name.removeprefix("_") if is_variable else name] = child
        return renamed


class Embedding(_NotQuantized, _PublicNames, keras.layers.Embedding):
    """Embedding layer."""


class Dense(_PublicNames, keras.layers.Dense):
    """Dense layer."""


class Metric(tf.__internal__.tracking.Trackable):
    """Makes a metric part of checkpoints, and its result the same on all replicas."""

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        return {variable.name: variable for variable in self.variables}

    def summed(self, variable: Any) -> tf.Tensor:
        """The sum of a variable over all replicas."""
        replica = tf.distribute.get_replica_context()
        value = tf.identity(variable)  # On this replica's device: what is read has none.
        is_one = replica is None or replica.num_replicas_in_sync == 1
        return value if is_one else replica.all_reduce(tf.distribute.ReduceOp.SUM, value)


@contextlib.contextmanager
def without_reduction(optimizer: Any) -> Iterator[None]:
    """Context manager in which an optimizer takes gradients as sums over all replicas."""
    optimizer._all_reduce_sum_gradients = list
    try:
        yield
    finally:  # Replicas of a process are traced in turns, each by a thread.
        vars(optimizer).pop("_all_reduce_sum_gradients", None)


def sum_before_clipping(optimizer: Any) -> None:
    """Has an optimizer clip the sums over all replicas, as in Keras 2, and not what it sums."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    apply = optimizer._backend_apply_gradients

    def apply_summed(grads, trainable_variables):
        pairs = optimizer._all_reduce_sum_gradients(zip(grads, trainable_variables, strict=True))
        with without_reduction(optimizer):
            apply([gradient for gradient, _ in pairs], trainable_variables)

    optimizer._backend_apply_gradients = apply_summed


def apply_sums(optimizer: Any, gradients: list[tf.Tensor], variables: list) -> None:
    """Updates variables by gradients that are summed over all replicas, and not scaled."""
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):  # Takes scaled ones.
        scale = tf.convert_to_tensor(optimizer.dynamic_scale)
        gradients = [gradient * scale for gradient in gradients]
    elif optimizer.loss_scale_factor:  # By which it divides.
        gradients = [gradient * optimizer.loss_scale_factor for gradient in gradients]
    with without_reduction(getattr(optimizer, "inner_optimizer", optimizer)):
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


def scaled_loss(optimizer: Any, loss: tf.Tensor) -> tf.Tensor:
    """The loss to differentiate, with an optimizer that scales it."""
    return loss * tf.convert_to_tensor(optimizer.dynamic_scale)


def unscaled_gradients(optimizer: Any, gradients: list) -> list:
    """Gradients of the loss, from gradients of the scaled loss."""
    scale = tf.convert_to_tensor(optimizer.dynamic_scale)
    return [None if x is None else tf.convert_to_tensor(x) / scale for x in gradients]


def tf_variables(layer: Any) -> list[tf.Variable]:
    """The TensorFlow variables behind the Keras variables of a layer.

    A SavedModel restores the Keras variables; its functions use the TensorFlow variables.
    """
    return [variable.value for variable in layer.variables]


class AdamW(keras.optimizers.AdamW):
    """AdamW that clips the sums over all replicas, and keeps its rate in checkpoints."""

    def __init__(self, learning_rate=0.001, jit_compile=None, is_legacy_optimizer=None, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self._current_learning_rate = None
        if not isinstance(self._learning_rate, keras.Variable):
            first, how = float(self._learning_rate(0)), tf.VariableAggregation.ONLY_FIRST_REPLICA
            # One of TensorFlow, which is in checkpoints, but not among `variables`.
            self._current_learning_rate = tf.Variable(first, trainable=False, aggregation=how)

    def _get_current_learning_rate(self):
        current = self._current_learning_rate
        return super()._get_current_learning_rate() if current is None else current

    def _backend_apply_gradients(self, grads, trainable_variables):
        if self._current_learning_rate is not None:
            self._current_learning_rate.assign(self._learning_rate(self._iterations))
        pairs = self._all_reduce_sum_gradients(zip(grads, trainable_variables, strict=True))
        with without_reduction(self):
            super()._backend_apply_gradients([g for g, _ in pairs], trainable_variables)

    def _distributed_tf_update_step(self, distribution, grads_and_vars, learning_rate):
        for gradient, variable in grads_and_vars:
            distribution.extended.update(
                variable, lambda v, g: self.update_step(g, v), args=(gradient,), group=False
            )

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        children.pop("_trainable_variables", None)  # Checkpoints have them under the model.
        return children

    def _use_weight_decay(self, variable):
        return super()._use_weight_decay(self._known(variable))

    def _known(self, variable: Any) -> Any:
        """The variable that the optimizer was built with."""
        return self._trainable_variables[self._get_variable_index(variable)]


@keras.saving.register_keras_serializable(package="xlnet")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Loss scaling in which a step that overflows counts, and the scale stays at 1 or above."""

    def build(self, var_list):
        super().build(var_list)
        self._state = tf.Module()
        self._state.current_loss_scale = self.dynamic_scale
        self._state.good_steps = self.step_counter

    def _stateful_handle_non_finite_grads(self):
        self.step_counter.assign(0)
        self.dynamic_scale.assign(tf.maximum(self.dynamic_scale / 2, 1.0))
        self.inner_optimizer._iterations.assign_add(1)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = self.inner_optimizer._trackable_children(save_type, **kwargs)
        return {"loss_scale": self._state, **children} if self.built else children

    @property
    def loss_scale(self) -> Any:
        """The scale, a variable."""
        return self.dynamic_scale
