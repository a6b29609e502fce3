"""Learning rate schedules: linear warmup, then one of several ways down.

    lr(step) = peak · step / warmup_steps                              before `warmup_steps`
    lr(step) = end + (peak - end) · decay(done, training)              from there on

`done` is the share of the steps after the warmup that have been run. The schedule of
tf-models-official is not used, as it cannot be deserialized from a saved model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official.xlnet.configs.registry import SCHEDULES
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.modeling.ops.keras import keras


def register_schedule(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a learning rate schedule: how the rate changes after the warmup.

    The function takes (done, training): the share of the steps between `warmup_steps` and
    `num_steps` that have been run, a float32 tensor in [0, 1], which stays 1 afterwards; and the
    section `training` of the configuration. It returns a factor, float32: 1 for the rate
    `training.learning_rate`, 0 for `training.end_learning_rate`.

    Args:
      name: value of `training.schedule` that selects it.

    Raises:
      ConfigError: a schedule is already registered under the name.

    Example:
      >>> @register_schedule("exponential")
      ... def exponential(done, training):
      ...     return tf.exp(-5 * done)
    """
    return SCHEDULES.register(name)


@register_schedule("polynomial")
def polynomial(done: tf.Tensor, training: TrainingConfig) -> tf.Tensor:
    """(1 - done)^`decay_power`; linear by default."""
    return (1 - done) ** training.decay_power


@register_schedule("cosine")
def cosine(done: tf.Tensor, training: TrainingConfig) -> tf.Tensor:
    """Half a cosine, without restarts (Loshchilov and Hutter, 2017)."""
    return (1 + tf.cos(math.pi * done)) / 2


@register_schedule("constant_with_cooldown")
def constant_with_cooldown(done: tf.Tensor, training: TrainingConfig) -> tf.Tensor:
    """Constant, and then a cooldown, linear or 1 - √ (Hägele et al., 2024)."""
    left = tf.minimum((1 - done) / training.cooldown_share, 1)
    return left if training.cooldown == "linear" else 1 - tf.sqrt(1 - left)


@keras.utils.register_keras_serializable(package="xlnet")
class WarmupThenDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate schedule: linear warmup, then the decay of `training.schedule`.

    Args:
      learning_rate: peak learning rate, reached after `warmup_steps`.
      warmup_steps: number of linear warmup steps; 0 for none.
      num_steps: step at which the decay ends; the rate is constant from there on.
      end_learning_rate: learning rate at the end of the decay.
      decay_power: exponent of the polynomial decay; 1 is linear.
      **settings: further keys of `training`, such as `schedule`, by default `polynomial`.

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
        **settings: Any,
    ):
        self.settings = {
            "learning_rate": learning_rate,
            "warmup_steps": warmup_steps,
            "num_steps": num_steps,
            "end_learning_rate": end_learning_rate,
            "decay_power": decay_power,
            **settings,
        }
        self.training = TrainingConfig().updated(self.settings, "")

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        training, step = self.training, tf.cast(step, tf.float32)
        peak, end = training.learning_rate, training.end_learning_rate
        warmup_steps = training.warmup_steps
        done = (step - warmup_steps) / max(1, training.num_steps - warmup_steps)
        factor = SCHEDULES[training.schedule](tf.clip_by_value(done, 0.0, 1.0), training)
        decayed = end + (peak - end) * factor
        return tf.where(step < warmup_steps, peak * step / max(1, warmup_steps), decayed)

    def get_config(self):
        return self.settings
