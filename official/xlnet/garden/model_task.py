"""Tasks of the Model Garden whose training step is that of our Keras model."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.core import base_task
from official.xlnet.modeling.models.trainable_model import TrainableModel


class ModelTask(base_task.Task):
    """Base class: `train_step` is the model's own."""

    def train_step(
        self,
        inputs: dict[str, tf.Tensor],
        model: TrainableModel,
        optimizer: tf_keras.optimizers.Optimizer,
        metrics=None,
    ) -> dict[str, tf.Tensor]:
        """One update by `model.train_step`; see the base class."""
        model.optimizer = optimizer
        with tf.init_scope():
            _ = optimizer.iterations  # Legacy optimizers create it when it is first read.
        return model.train_step(inputs)
