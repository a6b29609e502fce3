"""The optimizer of a run: AdamW or LAMB, with linear warmup and polynomial decay.

The schedule is implemented here because that of tf-models-official cannot be deserialized from a
saved model.
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.training.adamw import AdamW
from official.xlnet.training.lamb import LAMB

OPTIMIZERS = {"adamw": AdamW, "lamb": LAMB}


@tf_keras.utils.register_keras_serializable(package="xlnet")
class WarmupThenDecay(tf_keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate schedule: linear warmup, then polynomial decay.

    Args:
      learning_rate: peak learning rate, reached after `warmup_steps`.
      warmup_steps: number of linear warmup steps; 0 for none.
      num_steps: step at which the decay ends; the rate is constant from there on.
      end_learning_rate: learning rate at the end of the decay.
      decay_power: exponent of the decay; 1 is linear.

    Example:
      >>> rate = WarmupThenDecay(1e-3, warmup_steps=10, num_steps=110)
      >>> [f"{float(rate(step)):.1e}" for step in (5, 10, 60, 110)]
      ['5.0e-04', '1.0e-03', '5.0e-04', '0.0e+00']
    """

    def __init__(
        self,
        learning_rate: float,
        warmup_steps: int,
        num_steps: int,
        end_learning_rate: float = 0.0,
        decay_power: float = 1.0,
    ):
        self.settings = {
            "learning_rate": learning_rate,
            "warmup_steps": warmup_steps,
            "num_steps": num_steps,
            "end_learning_rate": end_learning_rate,
            "decay_power": decay_power,
        }

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        peak, warmup_steps, num_steps, end, power = self.settings.values()
        step = tf.cast(step, tf.float32)
        left = 1 - (step - warmup_steps) / max(1, num_steps - warmup_steps)
        decayed = end + (peak - end) * tf.clip_by_value(left, 0.0, 1.0) ** power
        return tf.where(step < warmup_steps, peak * step / max(1, warmup_steps), decayed)

    def get_config(self):
        return self.settings


def create_optimizer(training: TrainingConfig, num_layers: int) -> AdamW:
    """Creates the optimizer of a run, with its learning rate schedule.

    Args:
      training: hyperparameters. `optimizer` is a key of `OPTIMIZERS`. With `layer_decay` α, layer
        m of L (counting from 1) has the rate lr·α^(L-m), heads have the full rate lr, and so has
        the embedding without `decay_embedding`; with it, the embedding counts as layer 0.
      num_layers: number of encoder layers, L.

    Returns:
      The optimizer.
    """
    return OPTIMIZERS[training.optimizer](
        learning_rate=WarmupThenDecay(
            training.learning_rate,
            training.warmup_steps,
            training.num_steps,
            training.end_learning_rate,
            training.decay_power,
        ),
        weight_decay=training.weight_decay,
        beta_1=training.adam_beta_1,
        beta_2=training.adam_beta_2,
        epsilon=training.adam_epsilon,
        global_clipnorm=training.clip_norm or None,
        num_layers=num_layers,
        layer_decay=training.layer_decay,
        decay_embedding=training.decay_embedding,
    )
