"""Validates arguments of `fit` that Keras ignores, or rejects without saying why."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf
from absl import logging

from official.xlnet.errors import StoppedError, require_config
from official.xlnet.modeling.models.checked_weights import CheckedWeights
from official.xlnet.modeling.ops.keras import (
    IS_KERAS_3,
    GuardedLayer,
    keras,
    require_no_other_keras,
    sum_before_clipping,
)

if TYPE_CHECKING:
    from official.xlnet.modeling.heads.label_rule import LabelRule
    from official.xlnet.modeling.models.checked_data import DataChecks

_SETS_THE_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


@dataclasses.dataclass(frozen=True)
class _TestFunction:
    """The traced function of `evaluate`.

    Attributes:
      steps_per_execution: number of steps that one call runs.
      function: the function; None before it is traced.
    """

    steps_per_execution: int
    function: Callable[..., Any] | None


class CheckedFit(CheckedWeights, GuardedLayer, keras.Model):
    """A Keras model that refuses arguments of `fit` that would have no effect."""

    # `BackupAndRestore` deletes the attribute of the instance, which the next `fit` reads.
    _training_state = None
    # Keras 3 would trace it in a SavedModel, with unnamed inputs.
    _default_save_signature = None
    # The function of the last `evaluate` whose number of steps was not a multiple of
    # `steps_per_execution`.
    _other_test_function: _TestFunction | None = None
    steps_per_execution: int
    checks_data = True  # False in runs of this package, which makes their batches.
    _label_name: str | None = None  # Of labels among the features.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'encoder', None)!r})"

    def compile(self, *args, **kwargs):
        """As in Keras; raises `ConfigError` for parts of the other Keras."""
        require_no_other_keras("compile", (args, kwargs))
        super().compile(*args, **kwargs)
        self._other_test_function = None
        if IS_KERAS_3 and self.distribute_strategy.num_replicas_in_sync > 1:
            sum_before_clipping(self.optimizer)

    def _resolve_auto_jit_compile(self):
        """Returns False: Keras 3 would use XLA on a GPU, even in `predict` without `compile`."""
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
        """As in Keras 3, except that each step of several replicas is a graph of its own.

        The results of several workers get an axis, along which Keras averages them.
        """
        strategy, num_steps = self.distribute_strategy, self.steps_per_execution
        is_cluster = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        if is_cluster and strategy.extended._in_multi_worker_mode():
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
          ConfigError: the optimizer, loss or metrics cannot be read, e.g. are of the other Keras.
        """
        from official.xlnet.modeling.ops.keras_files import arguments_of_compile

        self.compile(**arguments_of_compile(config))
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
        """As in Keras; lists of texts, numbers and token ids are accepted, too.

        Raises:
          DataError: token ids or labels are out of range or missing.
          ConfigError: a callback is of the other Keras, or sets the learning rate of an optimizer
            that follows a schedule, or there are class or sample weights without labels.
          StoppedError: it was interrupted; notebooks show this `KeyboardInterrupt` in one line.
        """
        require_no_other_keras("callbacks", getattr(callbacks, "callbacks", callbacks))
        _check_callbacks(callbacks, self.optimizer)
        _check_weights(x, y, **kwargs)
        inputs, labels = self._rows(x, y, kwargs)
        heldout = validation_data
        if heldout is not None:
            heldout = self._data_checks().arrays(heldout)
        steps, heldout_steps = kwargs.get("steps_per_epoch"), kwargs.get("validation_steps")
        # Elsewhere, `_first_steps` ends the data after the steps.
        steps_to_divide = []
        if epochs != 1 or not isinstance(inputs, tf.data.Dataset):
            steps_to_divide.append(steps)
        if not isinstance(heldout, tf.data.Dataset):
            steps_to_divide.append(heldout_steps)
        steps_per_execution = self._largest_execution(*steps_to_divide)
        if steps_per_execution < self._whole_execution:
            logging.info(
                "steps_per_execution is %d here, a divisor of the steps", steps_per_execution
            )
            self.steps_per_execution = steps_per_execution
            self._other_test_function = self.train_function = self.test_function = None
        kwargs["callbacks"] = callbacks
        kwargs["validation_data"] = self._first_steps(heldout, heldout_steps)
        if hasattr(x, "element_spec"):  # Keras 3 warns that it does not shuffle a data set.
            kwargs.setdefault("shuffle", False)
        try:
            data = self._first_steps(inputs, steps)
            return super().fit(data, labels, batch_size, epochs, *args, **kwargs)
        except KeyboardInterrupt as error:
            raise StoppedError(*error.args or ["interrupted"]) from None

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        _check_weights(x, y, **kwargs)
        inputs, labels = self._rows(x, y, kwargs)
        steps = kwargs.get("steps")
        steps_per_execution = self._largest_execution(steps)
        if isinstance(inputs, tf.data.Dataset) or steps_per_execution == self._whole_execution:
            return super().evaluate(self._first_steps(inputs, steps), labels, *args, **kwargs)
        # Training and other evaluations continue with the function for whole executions. The one
        # that is traced here is kept for the next evaluation with as many steps per execution.
        whole = _TestFunction(self.steps_per_execution, self.test_function)
        other = self._other_test_function
        self.steps_per_execution, self.test_function = steps_per_execution, None
        if other is not None and other.steps_per_execution == steps_per_execution:
            self.test_function = other.function
        try:
            return super().evaluate(inputs, labels, *args, **kwargs)
        finally:
            self._other_test_function = _TestFunction(steps_per_execution, self.test_function)
            self.steps_per_execution = whole.steps_per_execution
            self.test_function = whole.function

    def predict(self, x, *args, **kwargs):
        """As in Keras; lists of texts and of token ids are accepted, too, also without elements."""
        checks = self._data_checks()
        inputs = checks.source(x)
        if checks.num_rows(inputs) == 0:
            return self._outputs_without_rows(inputs)
        inputs = self._first_steps(inputs, kwargs.get("steps"))
        return super().predict(inputs, *args, **kwargs)

    def _outputs_without_rows(self, inputs: Any) -> Any:
        """Outputs for inputs without rows, whose shapes Keras would have from a batch."""
        if getattr(self, "preprocessor", None) is None and not isinstance(inputs, dict):
            inputs = tf.zeros([0, 1], tf.int32)  # Texts do not say how many tokens they have.
        return tf.nest.map_structure(np.asarray, self.predict_step((inputs,)))

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are weights without labels."""
        _check_weights(x, y, **kwargs)
        inputs, labels = self._rows(x, y, kwargs)
        return super().train_on_batch(inputs, labels, *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        _check_weights(x, y, **kwargs)
        inputs, labels = self._rows(x, y, kwargs)
        return super().test_on_batch(inputs, labels, *args, **kwargs)

    def _first_steps(self, data: Any, steps: int | None) -> Any:
        """Returns data that ends after some steps, if Keras 3 would run more of them.

        Keras 3 runs whole executions of `steps_per_execution` steps until the data ends.
        """
        if not isinstance(data, tf.data.Dataset):
            return data
        if self._largest_execution(steps) == self._whole_execution:
            return data
        return data.take(steps)

    def _largest_execution(self, *steps: int | None) -> int:
        """Returns the largest number of steps per execution that divides all numbers of steps.

        Args:
          *steps: numbers of steps; None if all data is read.
        """
        sizes = range(self._whole_execution, 0, -1)
        return next(n for n in sizes if all(not num or num % n == 0 for num in steps))

    @property
    def _whole_execution(self) -> int:
        """Number of steps that cannot be interrupted: tf_keras can end within an execution."""
        return self.steps_per_execution if IS_KERAS_3 else 1

    def export(self, filepath, *args, **kwargs):
        """As in Keras, where the model has a signature; raises `ConfigError` for others."""
        signature = self._export_signature()
        require_config(
            signature is not None,
            f"export of {type(self).__name__}",
            "a classifier or a functional model",
            "a model without a signature of its own: `save_pretrained` and `export` of this "
            "package write it for serving",
        )
        if IS_KERAS_3:
            kwargs.setdefault("input_signature", [signature])
            return super().export(filepath, *args, **kwargs)
        archive = keras.export.ExportArchive()
        archive.track(self)
        archive.add_endpoint("serve", self.__call__, [signature])
        return archive.write_out(filepath)

    def _export_signature(self) -> Any:
        """Specs of the inputs of an exported model; None for models that have none."""
        return None

    def _data_checks(self) -> DataChecks:
        from official.xlnet.modeling.models.checked_data import DataChecks

        return DataChecks(self.encoder.model.vocab_size, self._label_rule(), self._label_name)

    def _label_rule(self) -> LabelRule | None:
        """Which labels the loss takes; None for any."""
        return None

    def _rows(self, x: Any, y: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        """Returns checked inputs, which may be a source of batches, and labels.

        Args:
          x: inputs or a source of batches.
          y: labels; None without any.
          options: other arguments, of which `sample_weight` becomes an array.
        """
        if not self.checks_data:
            return x, y
        checks = self._data_checks()
        inputs = checks.source(x)
        checks.require_rows(inputs)
        weights = options.get("sample_weight")
        if weights is not None:
            options["sample_weight"] = weights = checks.weights(weights)
        return inputs, checks.labels(y, weights)


def _with_axis(results: Any) -> Any:
    """Adds an axis in front of each result."""
    return tf.nest.map_structure(lambda x: x[None], results)


def _check_callbacks(callbacks: Any, optimizer: Any) -> None:
    """Raises `ConfigError` for callbacks that set the rate of an optimizer with a schedule."""
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
