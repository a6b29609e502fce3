"""AdamW with linear warm-up, polynomial decay, global-norm clipping and layer-wise rates.

The schedule is built by tf-models-official's `OptimizerFactory`. The optimizer is tf_keras'
AdamW with its update written as one expression, so that a step reads and writes each array
once, and with a factor on the whole update of a variable: scaling its *gradient* would do
nothing, because Adam divides by the gradient's own size.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import tensorflow as tf
import tf_keras

from official.modeling import optimization
from official.xlnet.config import TrainingConfig
from official.xlnet.fusion import compiled

# Biases and layer norms are not decayed (the original's exclusions).
NOT_DECAYED = ("bias", "gamma", "beta")


@tf_keras.utils.register_keras_serializable(package="xlnet")
class AdamW(tf_keras.optimizers.AdamW):
    """AdamW (Loshchilov and Hutter, 2019) with one pass over each variable.

        m = β1 m + (1 - β1) g;   v = β2 v + (1 - β2) g²
        w = w - s·lr·(m̂ / (√v̂ + ε) + decay·w)

    Arguments are those of `tf_keras.optimizers.AdamW`; `update_scale` may be set to a function
    of a variable that gives its factor s.
    """

    update_scale: Callable[[tf.Variable], float] | None = None

    def _apply_weight_decay(self, variables):
        """Nothing: the decay is part of `update_step`."""

    def _clip_gradients(self, grads):
        """Clips sums: the rows that a sparse gradient holds more than once are added up first."""
        return super()._clip_gradients([tf.convert_to_tensor(gradient) for gradient in grads])

    def update_step(self, gradient, variable):
        """Updates one variable and its moments."""
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        rate = tf.convert_to_tensor(self.learning_rate)
        if self.update_scale is not None:
            rate *= self.update_scale(variable)
        decay = self.weight_decay if self._use_weight_decay(variable) else 0.0
        update = compiled(_updated, float(self.beta_1), float(self.beta_2), self.epsilon, decay)
        step = tf.cast(self.iterations + 1, tf.float32)
        arrays = (tf.convert_to_tensor(x) for x in (gradient, variable, m, v))
        new_variable, new_m, new_v = update(*arrays, rate, step)
        variable.assign(new_variable)
        m.assign(new_m)
        v.assign(new_v)


def _updated(beta_1, beta_2, epsilon, decay, gradient, variable, m, v, rate, step):
    """The equations of `AdamW`, with both bias corrections pulled out of the loop."""
    dtype = variable.dtype
    root = tf.sqrt(1 - tf.pow(beta_2, step))
    adam_rate = tf.cast(rate * root / (1 - tf.pow(beta_1, step)), dtype)
    m += (gradient - m) * (1 - beta_1)
    v += (tf.square(gradient) - v) * (1 - beta_2)
    change = adam_rate * m / (tf.sqrt(v) + tf.cast(epsilon * root, dtype))
    change += tf.cast(rate * decay, dtype) * variable
    return variable - change, m, v


def learning_rate_schedule(
    training: TrainingConfig,
) -> tf_keras.optimizers.schedules.LearningRateSchedule:
    """Linear from 0 to `learning_rate` in `warmup_steps`, then polynomial decay to the end."""
    settings = {
        "optimizer": {"type": "adamw_experimental"},
        "learning_rate": {
            "type": "polynomial",
            "polynomial": {
                "initial_learning_rate": training.learning_rate,
                "end_learning_rate": training.end_learning_rate,
                "decay_steps": max(1, training.num_steps - training.warmup_steps),
                "power": training.decay_power,
                "offset": training.warmup_steps,
            },
        },
    }
    if training.warmup_steps:
        settings["warmup"] = {
            "type": "linear",
            "linear": {"warmup_steps": training.warmup_steps, "warmup_learning_rate": 0.0},
        }
    return optimization.OptimizerFactory(
        optimization.OptimizationConfig(settings)
    ).build_learning_rate()


def create_optimizer(training: TrainingConfig, num_layers: int) -> AdamW:
    """The optimizer of a run.

    Args:
      training: hyper-parameters; `layer_decay` α gives the variables of layer m of L (counting
        from 1) the rate lr·α^(L-m), the embeddings that of a layer below the first, and heads lr.
      num_layers: L.
    """
    optimizer = AdamW(
        learning_rate=learning_rate_schedule(training),
        weight_decay=training.weight_decay,
        beta_1=training.adam_beta_1,
        beta_2=training.adam_beta_2,
        epsilon=training.adam_epsilon,
        global_clipnorm=training.clip_norm or None,
    )
    optimizer.exclude_from_weight_decay(var_names=list(NOT_DECAYED))
    if training.layer_decay != 1.0:
        optimizer.update_scale = lambda variable: (
            training.layer_decay ** (num_layers - layer_of(variable.name, num_layers))
        )
    return optimizer


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
