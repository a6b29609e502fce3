"""Steps of Keras models: as many as they are told, however many a compiled function runs.

An execution is a call of the compiled function, of `steps_per_execution` steps. Keras 3 runs whole
executions until the data ends, and averages over replicas what our steps have summed.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging

from official.xlnet.modeling.ops.keras import (
    IS_KERAS_3,
    GuardedLayer,
    keras,
    sum_before_clipping,
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


class ExactSteps(GuardedLayer, keras.Model):
    """A Keras model that runs exactly the steps that it is told, on any number of replicas."""

    # The function of the last `evaluate` whose number of steps was not a multiple of
    # `steps_per_execution`.
    _other_test_function: _TestFunction | None = None
    steps_per_execution: int

    def compile(self, *args, **kwargs):
        """As in Keras."""
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

    def fit(self, x=None, y=None, batch_size=None, epochs=1, *args, validation_data=None, **kwargs):
        """As in Keras."""
        steps, heldout_steps = kwargs.get("steps_per_epoch"), kwargs.get("validation_steps")
        # Elsewhere, `_first_steps` ends the data after the steps.
        steps_to_divide = []
        if epochs != 1 or not isinstance(x, tf.data.Dataset):
            steps_to_divide.append(steps)
        if not isinstance(validation_data, tf.data.Dataset):
            steps_to_divide.append(heldout_steps)
        steps_per_execution = self._largest_execution(*steps_to_divide)
        if steps_per_execution < self._whole_execution:
            logging.info(
                "steps_per_execution is %d here, a divisor of the steps", steps_per_execution
            )
            self.steps_per_execution = steps_per_execution
            self._other_test_function = self.train_function = self.test_function = None
        kwargs["validation_data"] = self._first_steps(validation_data, heldout_steps)
        data = self._first_steps(x, steps)
        return super().fit(data, y, batch_size, epochs, *args, **kwargs)

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As in Keras."""
        steps = kwargs.get("steps")
        steps_per_execution = self._largest_execution(steps)
        if isinstance(x, tf.data.Dataset) or steps_per_execution == self._whole_execution:
            return super().evaluate(self._first_steps(x, steps), y, *args, **kwargs)
        # Training and other evaluations continue with the function for whole executions. The one
        # that is traced here is kept for the next evaluation with as many steps per execution.
        whole = _TestFunction(self.steps_per_execution, self.test_function)
        other = self._other_test_function
        self.steps_per_execution, self.test_function = steps_per_execution, None
        if other is not None and other.steps_per_execution == steps_per_execution:
            self.test_function = other.function
        try:
            return super().evaluate(x, y, *args, **kwargs)
        finally:
            self._other_test_function = _TestFunction(steps_per_execution, self.test_function)
            self.steps_per_execution = whole.steps_per_execution
            self.test_function = whole.function

    def predict(self, x, *args, **kwargs):
        """As in Keras."""
        return super().predict(self._first_steps(x, kwargs.get("steps")), *args, **kwargs)

    def _first_steps(self, data: Any, steps: int | None) -> Any:
        """Returns data that ends after some steps, if Keras 3 would run more of them."""
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


def _with_axis(results: Any) -> Any:
    """Adds an axis in front of each result."""
    return tf.nest.map_structure(lambda x: x[None], results)
