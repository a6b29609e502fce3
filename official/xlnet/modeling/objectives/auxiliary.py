"""Auxiliary objectives: further losses on the hidden states of the language model, in stages.

Continual multi-task pre-training (Sun et al., ERNIE 2.0, section 3): training begins with the
language model alone, and each stage adds an objective and keeps the earlier ones:

    loss = loss of `objective.kind` + Σ_i weight_i · [step ≥ first_step_i] · loss_i

`objective.auxiliary` names them, `objective.auxiliary_steps` and `objective.auxiliary_weights` have
the numbers. The stage is a function of the step, so a run resumes exactly, within a stage and
across stages. An objective that has not begun has weight 0; its loss is logged like the loss of an
untrained classifier.

All objectives read the same windows and hidden states as the language model does, so a further
one costs a linear classifier. The labels are functions of a batch, made on the device.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from official.xlnet.configs.registry import AUXILIARY
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives.base import Labels, ObjectiveBatch
from official.xlnet.modeling.ops.initializers import build_layers, normal
from official.xlnet.modeling.ops.keras import Layer, keras


class AuxiliaryObjective(Layer):
    """Base class: logistic regression on some hidden states of each row of a batch.

        logit = w · h + b,   loss = binary cross entropy

    A subclass with its own `build` and `loss_sum` is any other loss, such as the z-loss.

    Args:
      config: sections of the experiment.
    """

    def __init__(self, config: ObjectiveSections, **kwargs):
        super().__init__(**kwargs)
        self.config = config

    # Whether checkpoints have it under its name alone, not under `auxiliary/name`.
    is_apart = False

    def build(self, input_shape=None):
        model = self.config.model
        self.kernel = self.add_weight(
            name="kernel", shape=[model.d_model], initializer=normal(model.init_std)
        )
        self.bias = self.add_weight(name="bias", shape=[], initializer="zeros")
        super().build(input_shape)

    def labels(self, batch: dict[str, tf.Tensor], task: ObjectiveBatch) -> Labels:
        """Computes X labels of each row, and which of them count.

        Args:
          batch: a batch, as `pretraining_dataset` yields it.
          task: what the language model makes of it.
        """
        raise NotImplementedError

    def hidden_states(self, outputs: dict[str, tf.Tensor], inputs: dict[str, tf.Tensor]):
        """Selects the hidden states that are classified, float [B, X, D].

        Args:
          outputs: outputs of the encoder.
          inputs: `ObjectiveBatch.inputs`.
        """
        raise NotImplementedError

    def call(self, hidden_BXD: tf.Tensor) -> tf.Tensor:
        """Logits float32 [B, X] of hidden states [B, X, D]."""
        hidden_BXD = tf.cast(hidden_BXD, tf.float32)
        kernel_D, bias = tf.cast(self.kernel, tf.float32), tf.cast(self.bias, tf.float32)
        return tf.einsum("bxd,d->bx", hidden_BXD, kernel_D) + bias

    def loss_sum(
        self, outputs: dict[str, tf.Tensor], inputs: dict[str, tf.Tensor], labels: Labels
    ) -> tf.Tensor:
        """Computes the sum of the losses that count, in nats; float32 scalar.

        Args:
          outputs: outputs of the encoder, and the language model's `logits` float32 [B, P, V].
          inputs: `ObjectiveBatch.inputs`.
          labels: the labels, of the same rows.
        """
        logits_BX = self(self.hidden_states(outputs, inputs))
        label_BX = tf.cast(labels.label_BX, tf.float32)
        loss_BX = tf.nn.sigmoid_cross_entropy_with_logits(label_BX, logits_BX)
        return tf.reduce_sum(loss_BX * labels.weight_BX)


CreateAuxiliary = Callable[..., AuxiliaryObjective]


def register_auxiliary(name: str) -> Callable[[CreateAuxiliary], CreateAuxiliary]:
    """Decorator that registers a subclass of `AuxiliaryObjective`.

    Args:
      name: the name in `objective.auxiliary` that selects it.

    Raises:
      ConfigError: an objective is already registered under the name.

    Example:
      >>> @register_auxiliary("capitalization")
      ... class Capitalization(AuxiliaryObjective):
      ...     def labels(self, batch, task): ...
      ...     def hidden_states(self, outputs, inputs): ...
    """
    return AUXILIARY.register(name)


@keras.utils.register_keras_serializable(package="xlnet")
class AuxiliaryObjectives(Layer):
    """The auxiliary objectives of a configuration, as attributes.

    Args:
      config: sections of the experiment, or its dictionary.
    """

    def __init__(self, config: ObjectiveSections | dict, **kwargs):
        kwargs.setdefault("name", "auxiliary")
        super().__init__(**kwargs)
        self.config = ObjectiveSections.of(config) if isinstance(config, dict) else config
        self._stages = self.config.objective.stages()
        for stage in self._stages:
            setattr(self, stage.name, AUXILIARY[stage.name](self.config, name=stage.name))

    @property
    def parts(self) -> dict[str, AuxiliaryObjective]:
        """The objectives by name."""
        return {stage.name: getattr(self, stage.name) for stage in self._stages}

    @property
    def apart(self) -> dict[str, AuxiliaryObjective]:
        """Parts that are also attributes of the model; see `AuxiliaryObjective.is_apart`."""
        return {name: part for name, part in self.parts.items() if part.is_apart}

    def build(self, input_shape=None):
        build_layers(*self.parts.values())
        super().build(input_shape)

    def labels(self, batch: dict[str, tf.Tensor], task: ObjectiveBatch) -> tuple[Labels, ...]:
        """Returns the labels of each objective; see `AuxiliaryObjective.labels`."""
        return tuple(part.labels(batch, task) for part in self.parts.values())

    def loss_sums(self, outputs: dict[str, tf.Tensor], task: ObjectiveBatch) -> list[tf.Tensor]:
        """Returns the sum of the losses of each objective; see `AuxiliaryObjective.loss_sum`."""
        return [
            part.loss_sum(outputs, task.inputs, labels)
            for part, labels in zip(self.parts.values(), task.auxiliary, strict=True)
        ]

    def stage_weights(self, step: tf.Tensor) -> list[tf.Tensor]:
        """Returns the weight of each objective after `step` steps; 0 before it begins."""
        step = tf.cast(step, tf.int32)
        return [
            stage.weight * tf.cast(step >= stage.first_step, tf.float32) for stage in self._stages
        ]

    def get_config(self):
        return {**super().get_config(), "config": self.config.as_dict()}
