"""What users pass to a Keras model: arguments and data are checked, and say what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import StoppedError, require_config
from official.xlnet.modeling.models.checked_weights import CheckedWeights
from official.xlnet.modeling.models.exact_steps import ExactSteps
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras, require_no_other_keras

if TYPE_CHECKING:
    from official.xlnet.modeling.heads.label_rule import LabelRule
    from official.xlnet.modeling.models.checked_data import DataChecks

_SETS_THE_RATE = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


class CheckedFit(CheckedWeights, ExactSteps):
    """A Keras model that refuses arguments that would have no effect, and data out of range.

    Runs of this package go through the same methods, with batches of their own (`checks_data`).
    """

    # `BackupAndRestore` deletes the attribute of the instance, which the next `fit` reads.
    _training_state = None
    # Keras 3 would trace it in a SavedModel, with unnamed inputs.
    _default_save_signature = None
    checks_data = True  # False in runs of this package, which makes their batches.
    _label_name: str | None = None  # Of labels among the features.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self, 'encoder', None)!r})"

    def compile(self, *args, **kwargs):
        """As in Keras; raises `ConfigError` for parts of the other Keras."""
        require_no_other_keras("compile", (args, kwargs))
        super().compile(*args, **kwargs)

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
        inputs, labels = self._rows(x, y, kwargs)
        if validation_data is not None:
            validation_data = self._data_checks().arrays(validation_data)
        kwargs |= {"callbacks": callbacks, "validation_data": validation_data}
        if hasattr(x, "element_spec"):  # Keras 3 warns that it does not shuffle a data set.
            kwargs.setdefault("shuffle", False)
        try:
            return super().fit(inputs, labels, batch_size, epochs, *args, **kwargs)
        except KeyboardInterrupt as error:
            raise StoppedError(*error.args or ["interrupted"]) from None

    def evaluate(self, x=None, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        inputs, labels = self._rows(x, y, kwargs)
        return super().evaluate(inputs, labels, *args, **kwargs)

    def predict(self, x, *args, **kwargs):
        """As in Keras; lists of texts and of token ids are accepted, too, also without elements."""
        checks = self._data_checks()
        inputs = checks.source(x)
        if checks.num_rows(inputs) == 0:
            return self._outputs_without_rows(inputs)
        return super().predict(inputs, *args, **kwargs)

    def _outputs_without_rows(self, inputs: Any) -> Any:
        """Outputs for inputs without rows, whose shapes Keras would have from a batch."""
        if getattr(self, "preprocessor", None) is None and not isinstance(inputs, dict):
            inputs = tf.zeros([0, 1], tf.int32)  # Texts do not say how many tokens they have.
        return tf.nest.map_structure(np.asarray, self.predict_step((inputs,)))

    def train_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are weights without labels."""
        inputs, labels = self._rows(x, y, kwargs)
        return super().train_on_batch(inputs, labels, *args, **kwargs)

    def test_on_batch(self, x, y=None, *args, **kwargs):
        """As in Keras; raises `ConfigError` where there are sample weights without labels."""
        inputs, labels = self._rows(x, y, kwargs)
        return super().test_on_batch(inputs, labels, *args, **kwargs)

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
        from official.xlnet.modeling.models.checked_data import require_labels

        require_labels(x, y, options)
        checks = self._data_checks()
        inputs = checks.source(x)
        checks.require_rows(inputs)
        weights = options.get("sample_weight")
        if weights is not None:
            options["sample_weight"] = weights = checks.weights(weights)
        return inputs, checks.labels(y, weights)


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
