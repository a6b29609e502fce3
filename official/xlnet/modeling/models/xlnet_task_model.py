"""The model of a task: encoder and head, and the training step that joins them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASK_LOSSES
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads import create_head
from official.xlnet.modeling.kernels.stateless_dropout import dropout_seed_of_call, fold_in
from official.xlnet.modeling.models.checked_fit import CheckedFit
from official.xlnet.modeling.models.gradient_accumulation import accumulated
from official.xlnet.modeling.models.task_parts import (
    TOKEN_INPUTS,
    TaskParts,
    read_sequences,
    task_encoder,
)
from official.xlnet.modeling.models.trainable_model import GradientNorm, TrainableModel
from official.xlnet.modeling.networks.encoder_inputs import (
    by_name,
    rows_as_tensor,
    with_defaults,
)
from official.xlnet.modeling.objectives.base import Features, ObjectiveBatch
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.shapes import as_vector
from official.xlnet.tokenization.graph.packing import PADDING, padded

Batch = dict[str, tf.Tensor]


class EncoderWithHead(TaskParts, CheckedFit):
    """A Keras model of an encoder and a head."""

    @property
    def trainable_weights(self) -> list[tf.Variable]:
        """All that a task, or a loss beside it, reads and that is not frozen."""
        are_read = bool(self.config.task.auxiliary_loss_weights())
        unused = {id(weight) for weight in self.encoder.only_pretrained if not are_read}
        return [weight for weight in super().trainable_weights if id(weight) not in unused]

    @property
    def trainable_variables(self) -> list[tf.Variable]:
        """The same as `trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_weights(self) -> list[tf.Variable]:
        """All other weights: what is frozen, and what only pre-training reads."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [weight for weight in self.weights if id(weight) not in trained]

    @property
    def non_trainable_variables(self) -> list[tf.Variable]:
        """All other variables: `non_trainable_weights`, and the state of random generators."""
        trained = {id(weight) for weight in self.trainable_weights}
        return [variable for variable in self.variables if id(variable) not in trained]

    def build(self, input_shape=None):
        self.build_parts()
        self.built = True

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(rows_as_tensor(inputs), *args, **kwargs)

    def call(
        self,
        inputs: Batch | tf.Tensor,
        training: bool | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> Any:
        """The outputs of the head for the features of a call; see `XLNetTaskModel`."""
        inputs = _features(inputs)
        seed = dropout_seed_of_call(training, dropout_seed)
        seeds = fold_in(seed, 0), fold_in(seed, 1)
        # A frozen encoder is used as it is, without dropout.
        training = training and self.encoder.trainable

        def read(window, sequence):
            seed = fold_in(seeds[0], sequence) if self.with_memory else seeds[0]
            outputs = self.encoder({**window, "dropout_seed": seed}, training=training)
            return outputs["content"], outputs.get("memory")

        pooled = self.head.config.task.pooled_segments
        content_USTD = read_sequences(read, inputs, self.with_memory, pooled)
        return self.head(content_USTD, inputs, seeds[1])


@keras.utils.register_keras_serializable(package="xlnet")
class XLNetTaskModel(EncoderWithHead, TrainableModel):
    """Encoder and head.

    Args:
      config: the configuration, or its dictionary; `config.task` says which head.
      **kwargs: arguments of `keras.Model`. `dtype` is the precision policy; default:
        `config.training.precision` unless that is `float32`, else Keras' global policy.

    A call takes U units of S sequences of T tokens (`Head` says what S is) and returns the
    head's outputs:
      token_ids, segment_ids: int32 [U, S, T], padded on the left; [U, T] for a single sequence.
      is_padding: bool [U, S, T]. Where it or `segment_ids` is left out, it follows from `token_ids`
        as in `XLNetEncoder`.
      and what the head needs besides.

    Attributes:
      training_lengths: ascending lengths that training batches are cut to, of which the last one is
        their own; empty, the default: `bucket_lengths`.

    `fit` and `evaluate` take these features with the head's labels (`label` of most heads) and
    `weight` float32 [U], by default 1; or `(features, label)` and `(features, label, weight)`, as
    `fit(x, y, sample_weight=…)` gives them.

    With `task.long_texts: memory` the S sequences are one long text, read left to right with
    memory.

    Example:
      >>> model = XLNetTaskModel(XLNetConfig.load(model_dir))
      >>> model({"token_ids": ids, "segment_ids": segments, "is_padding": padding})["logits"]
    """

    _label_name = "label"
    training_lengths: tuple[int, ...] = ()

    def __init__(self, config: XLNetConfig | dict[str, Any], **kwargs):
        kwargs.setdefault("name", "xlnet_task")
        config = XLNetConfig.of(config)
        config.check()
        super().__init__(config.training.precision, **kwargs)
        self.config, model, policy = config, config.model, self.dtype_policy
        self._uncounted.gradient_norm = GradientNorm("gradient_norm")
        self.encoder = task_encoder(config, policy)
        self.head = create_head(HeadSections(model, config.task), dtype=policy)
        for name in config.task.auxiliary_loss_weights():
            setattr(self, name, TASK_LOSSES[name](model, config.objective.kind, dtype=policy))
        self.build(None)

    def build(self, input_shape=None):
        super().build(input_shape)
        for loss, _ in self.auxiliary_losses:
            loss.build()
        self.freeze()

    @property
    def auxiliary_losses(self) -> list[tuple[keras.layers.Layer, float]]:
        """The losses beside the head's, with their weights."""
        weights = self.config.task.auxiliary_loss_weights()
        return [(getattr(self, name), weight) for name, weight in weights.items()]

    def _label_rule(self):
        return self.head.label_rule()

    def train_step(self, batch: Batch) -> Batch:
        """One update.

        Its sequences are padded to the longest length there is; what all of them have as padding
        is cut off first, down to one of a few lengths (`training_lengths`), each of which is a
        graph of its own.

        A batch without labels does not count: its loss is not a number, nothing is added to the
        mean over several batches, and the optimizers of this package change no weight.

        Returns:
          loss; targets, the number of labels that it is the mean over; and gradient_norm, before
          clipping.
        """
        batch = _labelled(batch)
        replica = tf.distribute.get_replica_context()
        seed, variables = self.step_seed(1), self.trainable_variables
        count = tf.reduce_sum(self.head.num_items(batch) * batch["weight"])
        global_count = replica.all_reduce(tf.distribute.ReduceOp.SUM, count)

        def gradients(task, seed):
            part = Features(task.inputs)
            with tf.GradientTape() as tape:
                outputs = self(part, training=True, dropout_seed=seed)
                loss_sum = self._loss_sum(outputs, part, fold_in(seed, 2))
                weights = self.head.num_items(part) * part["weight"]
                cost_sum = self.with_layer_losses(loss_sum, weights)
                loss = self.scaled_loss(tf.math.divide_no_nan(cost_sum, global_count))
            gradients = []
            for gradient, variable in zip(tape.gradient(loss, variables), variables, strict=True):
                if gradient is None:
                    gradient = tf.zeros_like(variable)
                gradients.append(tf.convert_to_tensor(gradient))
            return gradients, loss_sum, None

        rows = batch["weight"][:, None]
        summed = accumulated(gradients, rows.shape[0], self.config.training)

        def sums(length):
            task = ObjectiveBatch(_cut(batch, length), rows, rows)
            total, loss_sum, _ = summed(task, seed)
            return total, loss_sum

        length = batch["token_ids"].shape[2]
        lengths = self._lengths_of_batches(length)
        if len(lengths) == 1:
            total, loss_sum = sums(length)
        else:
            index = _index_of_length(batch, lengths)
            branches = [functools.partial(sums, length) for length in lengths]
            total, loss_sum = tf.switch_case(index, branches)
        norm = tf.linalg.global_norm(self.update(self.unscaled_gradients(total)))
        is_learned = tf.cast(global_count > 0, tf.float32)
        self._uncounted.gradient_norm.update_state(norm, sample_weight=is_learned)
        self.loss_metric.add(loss_sum, count)
        self.targets_metric.update_state(count)
        return {metric.name: metric.result() for metric in self.metrics}

    def _lengths_of_batches(self, length: int) -> list[int]:
        """The lengths that batches of a length are cut to."""
        if self.with_memory:
            return [length]
        if self.training_lengths and self.training_lengths[-1] == length:
            return list(self.training_lengths)
        return bucket_lengths(length, self.config.task.num_buckets)

    def test_step(self, batch: Batch) -> Batch:
        """The loss of a batch, without dropout; takes the same batches as `train_step`."""
        batch = _labelled(batch)
        count = tf.reduce_sum(self.head.num_items(batch) * batch["weight"])
        loss_sum = self._loss_sum(self(batch, training=False), batch)
        self.loss_metric.add(loss_sum, count)
        return {"loss": self.loss_metric.result()}

    def _loss_sum(self, outputs: Batch, batch: Batch, seed: tf.Tensor | None = None) -> tf.Tensor:
        """Sum of the losses of a batch: the head's, and λ times each auxiliary one."""
        loss_U = self.head.loss(outputs, batch)
        for loss, weight in self.auxiliary_losses:
            loss_U += weight * self.head.num_items(batch) * loss(self.encoder, batch, seed)
        return tf.reduce_sum(loss_U * batch["weight"])

    @property
    def metrics(self):
        return [self.loss_metric, self.targets_metric, self._uncounted.gradient_norm]


def _cut(batch: Batch, length: int) -> Batch:
    """A batch with the last `length` columns of its sequences; padding is on the left."""
    num_columns = batch["token_ids"].shape[2]
    if length == num_columns:
        return batch
    shortened = {}
    for name, x in batch.items():
        has_columns = x.shape.rank > 2 and x.shape[2] == num_columns
        shortened[name] = x[:, :, -length:] if has_columns else x
    return shortened


def _index_of_length(batch: Batch, lengths: Sequence[int]) -> tf.Tensor:
    """Index of the shortest length that has all columns which are not padding in every row."""
    from_end_T = tf.range(batch["token_ids"].shape[2], 0, -1)
    needed = tf.reduce_max(tf.where(batch["is_padding"], 0, from_end_T))
    return tf.reduce_sum(tf.cast(needed > tf.constant(lengths[:-1]), tf.int32))


def _features(inputs: Batch | tf.Tensor) -> Features:
    """The features of a batch [U, S, …], with those that follow from `token_ids`."""
    inputs = by_name(inputs)
    if isinstance(inputs["token_ids"], tf.RaggedTensor):
        ragged = {name: x for name, x in inputs.items() if name in PADDING}
        length = tf.cast(inputs["token_ids"].bounding_shape(axis=1), tf.int32)
        inputs = {**inputs, **padded(ragged, length)}
    features = Features.of({name: tf.convert_to_tensor(x) for name, x in inputs.items()})
    if len(features["token_ids"].shape) == 2:
        of_tokens = {name: features[name][:, None] for name in TOKEN_INPUTS if name in features}
        features = Features(features | of_tokens)
    return Features(with_defaults(features))


def _labelled(data: Any) -> Features:
    """The features of a batch with labels and weights, in any form in which Keras hands it on."""
    features, labels, weight = keras.utils.unpack_x_y_sample_weight(data)
    features = _features(features)
    if labels is not None:
        features.update(labels if isinstance(labels, dict) else {"label": labels})
    if isinstance(weight, dict):  # Keras 3 repeats it for each label.
        weight, *_ = weight.values()
    total_weight = tf.ones_like(features["token_ids"][:, 0, 0], tf.float32)
    for factor in (x for x in (features.get("weight"), weight) if x is not None):
        total_weight *= as_vector(tf.cast(factor, tf.float32))
    return Features(features, weight=total_weight)


def bucket_lengths(length: int, num_buckets: int) -> list[int]:
    """Returns the lengths that inputs are padded to, shortest first.

    Example:
      >>> bucket_lengths(100, 3)
      [25, 50, 100]
    """
    lengths = {-(-length // 2**n) for n in range(num_buckets)}
    return sorted(kept for kept in lengths if kept >= min(length, 8))
