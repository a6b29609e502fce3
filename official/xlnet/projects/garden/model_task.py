"""Shared parts of the experiments: the training step of our Keras model, and the optimizer."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from official.core import base_task
from official.core import config_definitions as cfg
from official.xlnet.modeling.models.trainable_model import TrainableModel
from official.xlnet.modeling.ops.keras import keras


@dataclasses.dataclass
class ModelTaskConfig(cfg.TaskConfig):
    """Shared settings of the configurations of our tasks, besides `init_checkpoint`.

    Attributes:
      recipe: YAML file of a recipe.
      overrides: `key=value` strings that override the recipe.
      train_data: `input_path` and `global_batch_size`.
      validation_data: the same.
    """

    recipe: str = ""
    overrides: tuple[str, ...] = ()
    train_data: cfg.DataConfig = dataclasses.field(
        default_factory=lambda: cfg.DataConfig(is_training=True)
    )
    validation_data: cfg.DataConfig = dataclasses.field(
        default_factory=lambda: cfg.DataConfig(is_training=False)
    )


class ModelTask(base_task.Task):
    """Base class: `train_step` is the model's own."""

    def train_step(
        self,
        inputs: dict[str, tf.Tensor],
        model: TrainableModel,
        optimizer: keras.optimizers.Optimizer,
        metrics=None,
    ) -> dict[str, tf.Tensor]:
        """One update by `model.train_step`; see the base class."""
        model.optimizer = optimizer
        with tf.init_scope():
            _ = optimizer.iterations  # Legacy optimizers create it when it is first read.
        return model.train_step(inputs)


def adamw(learning_rate: float, num_steps: int, warmup_steps: int) -> dict[str, Any]:
    """AdamW with warmup and linear decay, as in the paper: settings of `OptimizationConfig`.

    Args:
      learning_rate: the highest learning rate.
      num_steps: steps until it is 0.
      warmup_steps: steps of linear warmup.
    """
    return {
        "optimizer": {
            "type": "adamw",
            "adamw": {
                "weight_decay_rate": 0.01,
                "epsilon": 1e-6,
                "exclude_from_weight_decay": ["gamma", "beta", "bias"],
            },
        },
        "learning_rate": {
            "type": "polynomial",
            "polynomial": {
                "initial_learning_rate": learning_rate,
                "end_learning_rate": 0.0,
                "decay_steps": num_steps,
            },
        },
        "warmup": {"type": "polynomial", "polynomial": {"warmup_steps": warmup_steps}},
    }
