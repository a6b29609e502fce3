"""Validates arguments of `fit` that Keras ignores, or rejects without saying why."""

from __future__ import annotations

import contextlib
import types
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.errors import ConfigError, StoppedError, require_config
from official.xlnet.modeling.networks.encoder_inputs import require_known
from official.xlnet.modeling.ops.keras import (
    IS_KERAS_3,
    GuardedLayer,
    keras,
    require_no_other_keras,
    sum_before_clipping,
)

_SETS_THE_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


_NO_FUNCTION = types.SimpleNamespace(size=0, function=None)


class CheckedFit(GuardedLayer, keras.Model):
    """A Keras model that refuses arguments of `fit` that would have no effect."""

    # `BackupAndRestore` deletes the attribute of the instance, which the next `fit` reads.
    _training_state = None
    # Keras 3 would trace it in a SavedModel, with inputs that have no names.
    _default_save_signature = None
    # The function of `evaluate` for steps that are no whole executions.
    _fitting_test = _NO_FUNCTION
    steps_per_execution: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'encoder', None)!r})"

    def compile(self, *args, **kwargs):
        """As in Keras; raises `ConfigError` for parts of the other Keras."""
        require_no_other_keras("compile", (args, kwargs))
        super().compile(*args, **kwargs)
        self._fitting_test = _NO_FUNCTION
        if IS_KERAS_3 and self.distribute_strategy.num_replicas_in_sync > 1:
            sum_before_clipping(self.optimizer)

    def _resolve_auto_jit_compile(self):
        """Without XLA, which Keras 3 would use on a GPU, also in `predict` without `compile`."""
        return False

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Creates the variables of loss and metrics in Keras 3, which cannot do so in a step.

        Keras itself would take a batch from the data and average it over replicas.
        """
        if self._distribute_strategy is None or not (self._compile_loss or self._compile_metrics):
            return
        if iterator is not None:
            spec = iterator._distributed_dataset.element_spec
            data_batch = tf.nest.map_structure(lambda x: getattr(x, "_value_specs", [x])[0], spec)
        with self.distribute_strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def _make_function(self, step_function):
        """As in Keras 3, where several steps of several replicas cannot be one graph.

        Results of several workers have an axis, along which Keras averages them.
        """
        strategy, num_steps = self.distribute_strategy, self.steps_per_execution
        is_several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if is_several and strategy.extended._in_multi_worker_mode():
            step = super()._make_function(lambda data: _with_axis(step_function(data)))
        else:
            step = super()._make_function(step_function)
        if num_steps == 1 or strategy.num_replicas_in_sync == 1:
            return step

        def execute(iterator):
            self.steps_per_execution = 1  # Read where the step is traced.
            try:
                logs = step(iterator)
                with contextlib.suppress(StopIteration, tf.errors.OutOfRangeError):
                    for _ in range(num_steps - 1):
                        logs = step(iterator)
                return logs
            finally:
                self.steps_per_execution = num_steps

        return execute

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles as a saved model was, with the optimizer's variables.

        Raises:
          ConfigError: the optimizer, loss or metrics cannot be read, as those of the other Keras.
        """
        try:
            settings = keras.saving.deserialize_keras_object(config)
        except TypeError as error:
            raise ConfigError(
                f"expected an optimizer, loss and metrics of {keras.__name__}, got others in the "
                "file, maybe of the other Keras: load it with compile=False, and compile again"
            ) from error
        self.compile(**settings)
        is_of_keras = isinstance(self.optimizer, keras.optimizers.Optimizer)
        if is_of_keras and not getattr(self.optimizer, "built", False):
            self.optimizer.build(self.trainable_variables)

    def fit(
        self,
        x=None,
        y=None,
        batch_size=None,
        epochs=1,
        *args,
        callbacks=None,
        validation_data=None,
        **kwargs,
    ):
        """As in Keras; lists of texts and numbers are taken, too.

        Raises:
          ConfigError: a callback is of the other Keras, or sets the learning rate of an optimizer
            that follows a schedule, or there are class or sample weights without labels.
          StoppedError: it was interrupted; notebooks show this `KeyboardInterrupt` in one line.
        """
        require_no_other_keras("callbacks", getattr(callbacks, "callbacks", callbacks))
        _check_callbacks(callbacks, self.optimizer)
        _check_weights(x, y, **kwargs)
        inputs, heldout = self._inputs(x), self._inputs(validation_data)
        steps = kwargs.get("steps_per_epoch"), kwargs.get("validation_steps")
        pairs = zip((inputs if epochs == 1 else None, heldout), steps, strict=True)
        size = self._fitting(*(n for data, n in pairs if not isinstance(data, tf.data.Dataset)))
        if size < self._execution:
            logging.info("steps_per_execution is %d here, a divisor of the steps", size)
            self.steps_per_execution, self._fitting_test = size, _NO_FUNCTION
            self.train_function = self.test_function = None
        kwargs |= {"callbacks": callbacks, "validation_data": self._cut(heldout, steps[1])}
        if hasattr(x, "element_spec"):  # Keras 3 warns that it does not shuffle a data set.
            kwargs.setdefault("shuffle", False)
        try:
            data = self._cut(inputs, steps[0])
            return super().fit(data, _arrays(y), batch_size, epochs, *args, **kwargs)
        except KeyboardInterrupt as error:
            raise StoppedError(*error.args or ["interrupted"]) from None

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        _check_weights(x, y, **kwargs)
        data, steps = self._inputs(x), kwargs.get("steps")
        inputs, size = self._cut(data, steps), self._fitting(steps)
        if inputs is not data or size == self._execution:
            return super().evaluate(inputs, _arrays(y), *args, **kwargs)
        # Training goes on as before; what is traced here is for the next evaluation, too.
        before, kept = (self.steps_per_execution, self.test_function), self._fitting_test
        self.steps_per_execution = size
        self.test_function = kept.function if kept.size == size else None
        try:
            return super().evaluate(inputs, _arrays(y), *args, **kwargs)
        finally:
            self._fitting_test = types.SimpleNamespace(size=size, function=self.test_function)
            self.steps_per_execution, self.test_function = before

    def predict(self, x, *args, **kwargs):
        """As in Keras; lists of texts are taken, too."""
        inputs = self._cut(self._inputs(x), kwargs.get("steps"))
        return super().predict(inputs, *args, **kwargs)

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are weights without labels."""
        _check_weights(x, y, **kwargs)
        return super().train_on_batch(self._inputs(x), _arrays(y), *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        _check_weights(x, y, **kwargs)
        return super().test_on_batch(self._inputs(x), _arrays(y), *args, **kwargs)

    def _cut(self, data: Any, steps: int | None) -> Any:
        """Data that ends after some steps, where Keras 3 would end after a whole execution."""
        is_cut = isinstance(data, tf.data.Dataset) and self._fitting(steps) < self._execution
        return data.take(steps) if is_cut else data

    def _fitting(self, *steps: int | None) -> int:
        """The most steps of an execution that divide some steps."""
        sizes = range(self._execution, 0, -1)
        return next(n for n in sizes if not any(x and x % n for x in steps))

    @property
    def _execution(self) -> int:
        """Steps of an execution, of which Keras 3 makes whole ones; tf_keras ends within one."""
        return self.steps_per_execution if IS_KERAS_3 else 1

    def _inputs(self, x: Any) -> Any:
        """Inputs with arrays for lists; raises an error where token ids are out of range."""
        if isinstance(x, tf.data.Dataset):
            return x.map(self._checked)
        x = _arrays(x)
        return self._checked(*x) if isinstance(x, tuple) else self._checked(x)

    def _checked(self, x: Any, *rest: Any) -> Any:
        ids = x.get("token_ids") if isinstance(x, dict) else x
        ids = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
        if isinstance(ids, np.ndarray | tf.Tensor) and tf.as_dtype(ids.dtype).is_integer:
            require_known(ids, self.encoder.model.vocab_size)
        return (x, *rest) if rest else x


def _arrays(x: Any) -> Any:
    """Arrays for lists of texts or numbers and columns of pandas, tensors for arrays of texts.

    Keras does not take lists beside arrays, and Keras 3 no texts of NumPy.
    """
    if isinstance(x, dict):
        return {name: _arrays(value) for name, value in x.items()}
    if isinstance(x, tuple):
        return tuple(map(_arrays, x))
    is_column = isinstance(x, list) and x and isinstance(x[0], str | int | float)
    x = np.asarray(x) if is_column or hasattr(x, "to_numpy") else x
    return tf.constant(x) if isinstance(x, np.ndarray) and x.dtype.kind in "USO" else x


def _with_axis(results: Any) -> Any:
    return tf.nest.map_structure(lambda x: x[None], results)


def _check_callbacks(callbacks: Any, optimizer: Any) -> None:
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    schedule = optimizer and optimizer.get_config().get("learning_rate")
    if not isinstance(schedule, dict):  # A number.
        return
    for callback in tf.nest.flatten(getattr(callbacks, "callbacks", callbacks)):
        require_config(
            not isinstance(callback, _SETS_THE_RATE),
            type(callback).__name__,
            "an optimizer with a constant learning rate",
            f"one with the schedule {schedule['class_name']}, which sets the rate in each "
            "step: leave the callback out, or compile with another optimizer, e.g. "
            f"{keras.__name__}.optimizers.AdamW(3e-5)",
        )


def _check_weights(x: Any, y: Any, class_weight=None, sample_weight=None, **_) -> None:
    """Raises `ConfigError` for weights without labels, which Keras ignores or misreports."""
    has_features_alone = isinstance(getattr(x, "element_spec", x), dict | tf.TensorSpec | tf.Tensor)
    for name, value in (("class_weight", class_weight), ("sample_weight", sample_weight)):
        require_config(
            value is None or y is not None or not has_features_alone,
            name,
            "labels beside the inputs, as fit(x, y) or a data set of (x, y) has them",
            "features alone",
        )
