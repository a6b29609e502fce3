"""AdamW with linear warm-up, polynomial decay, global-norm clipping and layer-wise rates.

The optimizer is tf_keras' AdamW with its update left to TensorFlow's kernel, which reads and
writes each array once, and with a factor on the whole update of a variable: scaling its
*gradient* would do nothing, because Adam divides by the gradient's own size. The schedule is our
own: that of tf-models-official cannot be read back from a saved model.
"""

from __future__ import annotations

import re

import tensorflow as tf
import tf_keras

from official.xlnet.configs.training import TrainingConfig

# Biases and layer norms are not decayed (the original's exclusions).
NOT_DECAYED = ("bias", "gamma", "beta")


@tf_keras.utils.register_keras_serializable(package="xlnet")
class AdamW(tf_keras.optimizers.AdamW):
    """AdamW (Loshchilov and Hutter, 2019) with one pass over each variable.

        m = β1 m + (1 - β1) g;   v = β2 v + (1 - β2) g²
        w = w - s·lr·(m̂ / (√v̂ + ε) + decay·w)

    Biases and layer norms are not decayed. A gradient that is not finite changes nothing.

    Args:
      learning_rate: lr, a number or a schedule.
      num_layers: L.
      layer_decay: α; s is α^(L-m) for variables of layer m of L (see `layer_of`).
      **kwargs: further arguments of `tf_keras.optimizers.AdamW`.
    """

    def __init__(self, learning_rate=0.001, num_layers=0, layer_decay=1.0, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.num_layers, self.layer_decay = num_layers, layer_decay
        self._factor = tf.constant(1.0)
        self.exclude_from_weight_decay(var_names=list(NOT_DECAYED))

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "layer_decay": self.layer_decay,
        }

    def _apply_weight_decay(self, variables):
        """Nothing: the decay is part of `update_step`."""

    def _clip_gradients(self, grads):
        """Finds the factor of all gradients; `update_step` multiplies by it on its way.

        The rows that a sparse gradient holds more than once are added up first. One value that
        is not finite makes the factor one that is not.
        """
        grads = [tf.convert_to_tensor(gradient) for gradient in grads]
        norm = tf.linalg.global_norm(grads)
        self._factor = 1 + 0 * norm
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        self._factor *= self.global_clipnorm / tf.maximum(norm, self.global_clipnorm)
        return grads

    def update_step(self, gradient, variable):
        """Updates one variable and its moments where they are.

        New arrays in the place of old ones would fragment the allocator's memory.
        """
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        layers_above = self.num_layers - layer_of(variable.name, self.num_layers)
        dtype, step = gradient.dtype, tf.cast(self.iterations + 1, tf.float32)
        power_1, power_2 = tf.pow(self.beta_1, step), tf.pow(self.beta_2, step)
        # A rate of 0 and betas of 1 change nothing.
        is_good = tf.math.is_finite(self._factor)
        rate = tf.where(is_good, self.learning_rate * self.layer_decay**layers_above, 0.0)
        factor = tf.where(is_good, self._factor, 0.0)
        if self._use_weight_decay(variable):
            variable.assign_sub(variable * tf.cast(rate * self.weight_decay, dtype))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=tf.cast(power_1, dtype),
            beta2_power=tf.cast(power_2, dtype),
            lr=tf.cast(rate, dtype),
            beta1=tf.cast(tf.where(is_good, self.beta_1, 1.0), dtype),
            beta2=tf.cast(tf.where(is_good, self.beta_2, 1.0), dtype),
            epsilon=tf.cast(self.epsilon * tf.sqrt(1 - power_2), dtype),  # Ours is added to √v̂.
            grad=tf.math.multiply_no_nan(gradient, tf.cast(factor, dtype)),
        )


@tf_keras.utils.register_keras_serializable(package="xlnet")
class WarmupThenDecay(tf_keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to the peak, then polynomial decay to the end.

    Args:
      learning_rate: the peak, reached after `warmup_steps`.
      warmup_steps: steps of linear warm-up; 0 for none.
      num_steps: the step at which the rate is `end_learning_rate`, from where on it stays.
      end_learning_rate: the last learning rate.
      decay_power: power of the decay; 1 is linear.
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
    """The optimizer of a run.

    Args:
      training: hyper-parameters; `layer_decay` α gives the variables of layer m of L (counting
        from 1) the rate lr·α^(L-m), the embeddings that of a layer below the first, and heads lr.
      num_layers: L.
    """
    return AdamW(
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
    )


def layer_of(variable_name: str, num_layers: int) -> int:
    """Layer of a variable: 0 for the encoder's embeddings, 1 … L for blocks, L for heads.

    Example:
      >>> layer_of("xlnet_encoder/layer_0/attention/query_kernel:0", num_layers=12)
      1
    """
    block = re.search(r"(?:^|/)layer_(\d+)/", variable_name)
    if block:
        return int(block.group(1)) + 1
    return 0 if re.search(r"(?:word|mask)_embedding", variable_name) else num_layers
