"""The pre-training model: encoder, LM head, memory, and the training step that joins them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import require_config, require_data
from official.xlnet.modeling.layers.losses import cross_entropy_sum
from official.xlnet.modeling.models.gradient_accumulation import accumulated
from official.xlnet.modeling.models.language_model import LanguageModel
from official.xlnet.modeling.models.trainable_model import Mean, TrainableModel
from official.xlnet.modeling.networks.encoder_inputs import by_name
from official.xlnet.modeling.networks.recurrent_memory import Memory
from official.xlnet.modeling.objectives import create_objective
from official.xlnet.modeling.objectives.auxiliary import AuxiliaryObjectives
from official.xlnet.modeling.objectives.base import Features, ObjectiveBatch
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.keras import keras

# Features that `fit` and `evaluate` read and a call does not take.
_FIT_ONLY = {"can_be_target", "context_length", "follows", "target_mask"}


@keras.utils.register_keras_serializable(package="xlnet")
class XLNetPretrainer(LanguageModel, TrainableModel):
    """Language modeling with `fit` and `evaluate`, under any objective (`objectives`).

    Args:
      config: the configuration, or its dictionary.
      batch_size: number of rows over all replicas that the memory has room for. Default:
        `config.training.batch_size`.
      **kwargs: arguments of `keras.Model`. `dtype` is the precision policy; default:
        `config.training.precision` unless that is `float32`, else Keras' global policy.

    `fit` and `evaluate` take batches of `pretraining_dataset`, or batches that bring their own
    `perm_mask` and targets (`objectives.permutation_lm`). A call (`model(inputs)`) takes
    the encoder's inputs with `target_positions`, or with `content_positions` int32 [B, P], and
    returns the encoder's outputs and `logits` float32 [B, P, V]: of the query stream at the
    former, of the content stream at the latter. `predict` takes both kinds of batches.

    Weights are float32; the network computes in `dtype`.

    Example:
      >>> config = XLNetConfig.load("configs/tiny.yaml")
      >>> model = XLNetPretrainer(config)
      >>> model.compile(create_optimizer(config.training, config.model.num_layers))
      >>> model.fit(pretraining_dataset("data", batch_size=16), steps_per_epoch=1000)
    """

    def __init__(
        self, config: XLNetConfig | dict[str, Any], batch_size: int | None = None, **kwargs
    ):
        kwargs.setdefault("name", "xlnet_pretrainer")
        config = XLNetConfig.of(config)
        config.check()
        super().__init__(config.training.precision, **kwargs)
        self.config, policy = config, self.dtype_policy
        self._memory_rows = config.training.batch_size if batch_size is None else batch_size
        self.create_layers(policy)
        sections = ObjectiveSections.of(config)
        self.objective = create_objective(sections)
        self.auxiliary = AuxiliaryObjectives(sections, dtype=policy)
        for name, part in self.auxiliary.apart.items():
            setattr(self, name, part)
        self.gradient_norm_metric = Mean("gradient_norm")
        self.memory_metric = Mean("memory_valid")
        self.memory = self._new_memory()
        self._uncounted.evaluation_memory = None
        self._uncounted.auxiliary = [Mean(f"loss_{name}") for name in self.auxiliary.parts]
        self.build(None)

    def build(self, input_shape=None):
        build_layers(self.encoder, self.lm_head, self.auxiliary)
        self.freeze()
        self.built = True

    def call(self, inputs: dict[str, tf.Tensor] | tf.Tensor, training: bool | None = None):
        return self.run_layers(inputs, training)

    def make_permutation(self, batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        """The factorization order, or mask, and the targets of a batch, made on the device.

        `config.objective` draws them, as a function of seed, epoch and window. A batch with
        `perm_mask` brings its own (`objectives.permutation_lm`).

        Raises:
          DataError: the batch lacks a feature.
        """
        batch = _features(batch)
        task = self.objective(batch)
        return task._replace(auxiliary=self.auxiliary.labels(batch, task))

    def train_step(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """One update from a batch of windows.

        The loss is the mean over all real targets of all replicas, in nats. Auxiliary objectives
        add theirs, each a mean over its own labels, by the weights of the stage; adaptive depth
        adds its ponder cost, which is trained for but not reported. With `accumulate_steps` the
        batch goes through the network in slices, one after the other, with `parallel_slices` side
        by side.

        A batch without targets does not count: its loss is not a number, nothing is added to the
        means over several batches, and the optimizers of this package change no weight.

        Returns:
          loss, and loss_NAME of each auxiliary objective; gradient_norm, before clipping;
          memory_valid, the share of the memory's columns that belong to the same document as their
          row; and targets, the number of targets that the loss is the mean over.
        """
        batch = _features(batch)
        task = self.make_permutation(batch)
        task.inputs.update(self.memory_inputs(batch))
        replica = tf.distribute.get_replica_context()
        counts = self._loss_counts(task)
        global_counts = replica.all_reduce(tf.distribute.ReduceOp.SUM, counts)
        weights = tf.stack([1.0, *self.auxiliary.stage_weights(self.optimizer.iterations)])
        seed, training = self.step_seed(0), self.config.training

        def gradients(task, seed):
            with tf.GradientTape() as tape:
                outputs = self({**task.inputs, "dropout_seed": seed}, training=True)
                loss_sums = self._loss_sums(outputs, task)
                losses = weights * tf.math.divide_no_nan(loss_sums, global_counts)
                costs = self.with_layer_losses(tf.constant(0.0), task.mask_BP)
                loss = tf.reduce_sum(losses) + tf.math.divide_no_nan(costs, global_counts[0])
                loss = self.scaled_loss(loss)
            return tape.gradient(loss, self.trainable_variables), loss_sums, outputs.get("memory")

        gradients = accumulated(gradients, task.labels_BP.shape[0], training)
        total, loss_sums, memory = gradients(task, seed)
        total = self.unscaled_gradients(total)
        is_learned = tf.cast(tf.reduce_any(global_counts > 0), tf.float32)
        norm = tf.linalg.global_norm(self.update(total))
        self.gradient_norm_metric.update_state(norm, sample_weight=is_learned)
        self.targets_metric.update_state(counts[0])
        if self.memory is not None:
            self.update_memory({"memory": memory}, batch)
            length = self.config.model.mem_len
            share_B = tf.minimum(task.inputs["memory_length"], length) / length
            self.memory_metric.update_state(share_B)
        self._update_losses(loss_sums, counts)
        return {metric.name: metric.result() for metric in self.metrics}

    def _loss_counts(self, task: ObjectiveBatch) -> tf.Tensor:
        """Numbers of labels of each objective, float32 [1 + number of auxiliary objectives]."""
        weights = [task.mask_BP, *(labels.weight_BX for labels in task.auxiliary)]
        return tf.stack([tf.reduce_sum(weight) for weight in weights])

    def _loss_sums(self, outputs: dict[str, tf.Tensor], task: ObjectiveBatch) -> tf.Tensor:
        """Sums of the losses of each objective, float32 [1 + number of auxiliary objectives]."""
        loss_sum = cross_entropy_sum(outputs["logits"], task.labels_BP, task.mask_BP)
        return tf.stack([loss_sum, *self.auxiliary.loss_sums(outputs, task)])

    def _update_losses(self, loss_sums: tf.Tensor, counts: tf.Tensor) -> None:
        for index, metric in enumerate(self.loss_metrics):
            metric.add(loss_sums[index], counts[index])

    def test_step(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Losses of a batch; memory is carried from batch to batch as in training."""
        task, outputs = self._evaluate_batch(batch)
        self._update_losses(self._loss_sums(outputs, task), self._loss_counts(task))
        return {metric.name: metric.result() for metric in self.loss_metrics}

    def predict_step(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Outputs for a batch of inputs of a call, or for one that `fit` takes.

        Returns:
          The outputs of a call, except for the memory, whose first axis is not the batch. For
          a batch that `fit` takes, the network reads it as in `evaluate`; further keys say what the
          logits predict: `labels` int32 [B, P] and `target_mask` float32 [B, P].
        """
        batch, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
        if _FIT_ONLY.isdisjoint(by_name(batch)):
            outputs = dict(self(batch, training=False))
        else:
            task, outputs = self._evaluate_batch(batch)
            outputs = {**outputs, "labels": task.labels_BP, "target_mask": task.mask_BP}
        outputs.pop("memory", None)
        return outputs

    def make_test_function(self, force=False):
        """As in Keras. Windows start with `context_length` 0, so old memory is never seen."""
        self.make_evaluation_memory()
        return super().make_test_function(force)

    def make_predict_function(self, force=False):
        """As in Keras; `predict_step` says what it returns."""
        self.make_evaluation_memory()
        return super().make_predict_function(force)

    def _evaluate_batch(self, batch: dict[str, tf.Tensor]):
        """The `ObjectiveBatch` of a batch, and the outputs; carries the evaluation's memory on."""
        batch = _features(batch)
        task = self.make_permutation(batch)
        memory = self._uncounted.evaluation_memory
        task.inputs.update(self._recall(memory, batch))
        outputs = self(task.inputs, training=False)
        if memory is not None:
            memory.write(outputs["memory"], batch.get("window_id"))
        return task, outputs

    def make_evaluation_memory(self) -> None:
        """Creates the memory that evaluation reads and writes, unless it is there."""
        if self._uncounted.evaluation_memory is None:
            with self.distribute_strategy.scope():
                self._uncounted.evaluation_memory = self._new_memory()

    @property
    def loss_metrics(self) -> list[keras.metrics.Mean]:
        """Losses of the language model and of the auxiliary objectives."""
        return [self.loss_metric, *self._uncounted.auxiliary]

    @property
    def metrics(self):
        metrics = [*self.loss_metrics, self.gradient_norm_metric, self.targets_metric]
        return metrics if self.memory is None else [*metrics, self.memory_metric]

    def get_config(self):
        return {**super().get_config(), "batch_size": self._memory_rows}

    def _new_memory(self) -> Memory | None:
        model = self.config.model
        if not model.mem_len:
            return None
        replicas = self.distribute_strategy.num_replicas_in_sync
        rows = -(-self._memory_rows // replicas)
        dtype = self.encoder.compute_dtype
        return Memory(model.num_layers, rows, model.mem_len, model.d_model, dtype)

    def memory_inputs(self, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Inputs of a call that let each row of a batch attend to the windows before it.

        For a training loop of your own, with `update_memory`; `fit` does both.

        Args:
          batch: a batch of `pretraining_dataset`: row b continues row b of the batch before, as far
            as its `context_length` says.

        Returns:
          `memory` [L, B, M, D] and `memory_length` int32 [B]; {} where `model.mem_len` is 0.

        Raises:
          DataError: the batch lacks `context_length`, or its number of rows is not known.
        """
        return self._recall(self.memory, batch)

    def update_memory(
        self, outputs: dict[str, tf.Tensor], batch: dict[str, tf.Tensor] | None = None
    ) -> None:
        """Keeps the `memory` of a call for the next batch; does nothing without one.

        Args:
          outputs: what a call with `memory_inputs` returned.
          batch: the batch. A row of the next one sees the memory only if it follows this one's
            window; without `batch`, it is taken to.
        """
        if self.memory is not None:
            self.memory.write(outputs["memory"], (batch or {}).get("window_id"))

    def _recall(self, memory: Memory | None, batch: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The encoder inputs that concern memory; none where there is no memory.

        A row sees no memory if its window follows another window than the memory's. Batches that do
        not say which windows they follow are taken at their word.
        """
        if memory is None:
            return {}
        batch = Features.of(batch)
        num_rows = batch["token_ids"].shape[0]
        require_data(
            num_rows is not None,
            "batch",
            "a known number of rows, each of which has a memory",
            "None; make batches with drop_remainder=True",
        )
        length_B = batch["context_length"]
        if "follows" in batch:
            length_B = tf.where(memory.is_of(batch["follows"]), length_B, 0)
        return {"memory": memory.read(num_rows), "memory_length": length_B}


def _features(data: Any) -> Features:
    """The features of a batch, in any form in which Keras hands it on."""
    features, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    require_config(
        labels is None and weights is None,
        "batch",
        "its features alone, as XLNetPretrainer draws its own targets",
        "labels or sample weights beside them",
    )
    return Features.of(features)
