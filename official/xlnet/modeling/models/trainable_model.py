"""Base class of the trainable Keras models: precision, `compile` and loss scaling."""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.errors import require_config
from official.xlnet.modeling.kernels.stateless_dropout import fold_in
from official.xlnet.modeling.models.checked_fit import CheckedFit
from official.xlnet.modeling.ops.keras import (
    IS_KERAS_3,
    Metric,
    apply_sums,
    keras,
    scaled_loss,
    unscaled_gradients,
)


@keras.utils.register_keras_serializable(package="xlnet")
class Mean(Metric, keras.metrics.Mean):
    """Mean metric; NaN without values.

    It is named as Keras' own, since files of Keras name the values of metrics by their class.
    """

    def add(self, total: tf.Tensor, count: tf.Tensor) -> None:
        """Adds a sum of so many values."""
        self.update_state(tf.math.divide_no_nan(total, count), sample_weight=count)

    def result(self):
        if not IS_KERAS_3:
            return tf.where(self.count > 0, super().result(), float("nan"))
        return self.summed(self.total) / self.summed(self.count)


class NotSaved:
    """Excludes a metric from saved files, as files of earlier versions do not have it."""

    def save_own_variables(self, store):
        """Saves nothing."""

    def load_own_variables(self, store):
        """Loads nothing."""


@keras.utils.register_keras_serializable(package="xlnet")
class NumTargets(NotSaved, Metric, keras.metrics.Sum):
    """Sum metric excluded from saved files."""

    def result(self):
        return self.summed(self.total) if IS_KERAS_3 else super().result()


@keras.utils.register_keras_serializable(package="xlnet")
class GradientNorm(NotSaved, Mean):
    """Mean of the global norm of gradients over steps, excluded from saved files."""


class TrainableModel(CheckedFit):
    """Base class of Keras models with a configuration, a training step and a loss.

    Args:
      precision: precision policy, unless `dtype` is given; with `float32`, Keras' global policy.
      lora_rank: rank of adapters; 0 for none. See `add_lora`.
      lora_options: further arguments of `add_lora`.
      **kwargs: arguments of `keras.Model`.

    Attributes:
      config: the configuration, which a saved model keeps.
    """

    def __init__(
        self,
        precision: str,
        lora_rank: int = 0,
        lora_options: dict[str, Any] | None = None,
        **kwargs,
    ):
        if precision != "float32":
            kwargs.setdefault("dtype", precision)
        super().__init__(**kwargs)
        # Metrics cover all replicas already; Keras would add them up for each worker.
        self.distribute_reduction_method = "first"
        self.loss_metric = Mean("loss")
        # In plain objects, so no part of the model's state, which older checkpoints lack.
        self._new_lora = types.SimpleNamespace(rank=lora_rank, options=lora_options or {})
        self._uncounted = types.SimpleNamespace(targets=NumTargets("targets"))

    @property
    def targets_metric(self) -> NumTargets:
        """Number of targets that the loss is averaged over; the loss is NaN without targets."""
        return self._uncounted.targets

    def freeze(self) -> None:
        """Freezes parts of the built encoder as `training` says; they have no moments."""
        training, encoder = self.config.training, self.encoder
        encoder.trainable = not (training.freeze_network or self.config.task.freeze_encoder)
        if training.freeze_embeddings:
            encoder.word_embedding.trainable = False
        for block in encoder.blocks[: training.freeze_layers]:
            block.trainable = False
        if self._new_lora.rank:
            from official.xlnet.modeling.models.lora import add_lora

            add_lora(self, self._new_lora.rank, **self._new_lora.options)

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        metrics=None,
        loss_weights=None,
        weighted_metrics=None,
        **kwargs,
    ):
        """Chooses the optimizer; loss and metrics are the model's own.

        Args:
          optimizer: any optimizer of `keras.optimizers`, its name, or a `LossScaleOptimizer` around
            one; with tf_keras also of `keras.optimizers.legacy` or `official.nlp.optimization`.
          loss: None, as for the next three.
          metrics: None.
          loss_weights: None.
          weighted_metrics: None.
          **kwargs: as in Keras: `jit_compile`, `run_eagerly`, `steps_per_execution`, …

        Raises:
          ConfigError: there is a loss or a metric, or the optimizer is of the other Keras.
        """
        unused = {
            "loss": loss,
            "metrics": metrics,
            "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
        }
        refused = [f"{name}={value!r}" for name, value in unused.items() if value is not None]
        metric_names = ", ".join(metric.name for metric in self.metrics)
        why = f"as {type(self).__name__} computes its own loss and metrics ({metric_names})"
        require_config(not refused, "compile", f"an optimizer alone, {why}", ", ".join(refused))
        super().compile(optimizer=optimizer, **kwargs)
        with self.distribute_strategy.scope():
            if IS_KERAS_3 and not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
            # A legacy optimizer makes this variable when it is first read; in a step, which reads
            # it for the seed of dropout, that fails on several replicas.
            _ = self.optimizer.iterations

    def step_seed(self, purpose: int) -> tf.Tensor:
        """Returns the seed of dropout in this step on this replica, int32 [2].

        Args:
          purpose: a number that no other kind of model has.
        """
        seed = tf.constant([self.config.training.seed, purpose], tf.int32)
        optimizer: Any = getattr(self.optimizer, "inner_optimizer", self.optimizer)
        # `iterations` of Keras 3 counts updates, one for `gradient_accumulation_steps` steps.
        steps = optimizer._iterations if IS_KERAS_3 else optimizer.iterations
        seed = fold_in(seed, tf.cast(steps, tf.int32))
        return fold_in(seed, tf.distribute.get_replica_context().replica_id_in_sync_group)

    def with_layer_losses(self, loss_sum: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
        """A sum of losses with the costs that layers added to the last call (`Layer.add_loss`).

        Args:
          loss_sum: float32 scalar, the sum of a batch's losses.
          weights: float32, weights of what was summed. Each cost, a mean, is counted as often.
        """
        return tf.add_n([loss_sum, *(tf.reduce_sum(weights) * cost for cost in self.losses)])

    def scaled_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the loss to differentiate, scaled if the optimizer is a `LossScaleOptimizer`."""
        return scaled_loss(self.optimizer, loss) if self.has_loss_scale else loss

    def unscaled_gradients(self, gradients: list[tf.Tensor | None]):
        """Gradients of the loss, from the gradients of `scaled_loss`."""
        return unscaled_gradients(self.optimizer, gradients) if self.has_loss_scale else gradients

    def update(self, gradients: Sequence[tf.Tensor | None]) -> list[tf.Tensor]:
        """Updates the weights by the gradients of all replicas together, and returns these.

        They are summed first, so an optimizer clips what it would clip on one device. A variable
        without a gradient stays as it is.
        """
        pairs = [
            (tf.convert_to_tensor(gradient), variable)
            for gradient, variable in zip(gradients, self.trainable_variables, strict=True)
            if gradient is not None
        ]
        variables = [variable for _, variable in pairs]
        replica = tf.distribute.get_replica_context()
        sums = replica.all_reduce(tf.distribute.ReduceOp.SUM, [gradient for gradient, _ in pairs])
        if isinstance(self.optimizer, keras.optimizers.legacy.Optimizer):
            self.optimizer.apply_gradients(pairs)  # It may clip before it sums, so it does both.
        else:
            apply_sums(self.optimizer, sums, variables)
        return sums

    @property
    def has_loss_scale(self) -> bool:
        """Whether the optimizer is a `LossScaleOptimizer`."""
        return isinstance(self.optimizer, keras.mixed_precision.LossScaleOptimizer)

    def get_config(self):
        return {
            "name": self.name,
            "dtype": self.dtype_policy.name,
            "config": self.config.as_dict(),
            **self.encoder.lora_config(),
        }
