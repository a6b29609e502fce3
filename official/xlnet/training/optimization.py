"""AdamW, LAMB and Muon with warmup, polynomial decay, clipping and layer-wise rate decay.

AdamW is tf_keras' with two changes. The update runs in TensorFlow's fused Adam kernel, which
reads and writes each array once. Layer-wise rate decay scales the update of a variable rather than
its gradient, because Adam is invariant to the scale of the gradient. The schedule is implemented
here because the schedule of tf-models-official cannot be deserialized from a saved model.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import tensorflow as tf
import tf_keras

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.configs.validation import AT_LEAST_1, require_number, require_type

INITIAL_LOSS_SCALE = (
    2.0**15
)  # Keras' own; overflows halve it within a few steps where it is too high.

# Variables without weight decay: biases and layer normalization, as in the original code.
NOT_DECAYED = ("bias", "gamma", "beta")

# Names of embeddings, and of BERT's layer norm behind them.
_EMBEDDING = r"(?:word|mask|position|type)_embedding|/embeddings/"

# Coefficients of Jordan et al., with the steepest slope at 0: five iterations bring all singular
# values above about 0.01 of the norm into 0.7 … 1.2.
_NEWTON_SCHULZ_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NEWTON_SCHULZ_STEPS = 5
_EPSILON = 1e-7


class _Step(NamedTuple):
    """Numbers of one update, the same for all variables.

    Attributes:
      rate: learning rate, without layer-wise decay.
      factor: scale of the gradient, from clipping.
      beta_1: decay rate of the first moment, β1.
      beta_2: decay rate of the second moment, β2.
      power_1: β1 to the power of the step.
      power_2: β2 to the power of the step.
      epsilon: what the fused kernel adds to √v, so that ε is added to √v̂.
    """

    rate: tf.Tensor
    factor: tf.Tensor
    beta_1: tf.Tensor
    beta_2: tf.Tensor
    power_1: tf.Tensor
    power_2: tf.Tensor
    epsilon: tf.Tensor


@tf_keras.utils.register_keras_serializable(package="xlnet")
class AdamW(tf_keras.optimizers.AdamW):
    """AdamW optimizer (Loshchilov and Hutter, 2019) with layer-wise learning rate decay.

        m = β1 m + (1 - β1) g;   v = β2 v + (1 - β2) g²
        w = w - s·lr·(m̂ / (√v̂ + ε) + decay·w)

    Biases and layer normalization weights are not decayed. A step with a non-finite gradient, or
    with a gradient of zero, as there is without targets, leaves weights and moments unchanged.

    Args:
      learning_rate: lr, a float or a learning rate schedule.
      num_layers: number of encoder layers, L.
      layer_decay: α in (0, 1]; the rate of layer m is scaled by s = α^(L-m) (see `layer_of`).
        1 for the same rate everywhere.
      decay_embedding: whether the embedding counts as layer 0; False for the full rate.
      **kwargs: further arguments of `tf_keras.optimizers.AdamW`.
    """

    def __init__(
        self,
        learning_rate=0.001,
        num_layers=0,
        layer_decay=1.0,
        decay_embedding=True,
        **kwargs,
    ):
        super().__init__(learning_rate, **kwargs)
        self.num_layers, self.layer_decay = num_layers, layer_decay
        self.decay_embedding = decay_embedding
        # On a GPU, Keras would compile the update of each variable. Called eagerly, the compiled
        # function would keep the numbers of its first step.
        self.jit_compile = False
        self._step: _Step  # Set before each update by `_clip_gradients`.
        self.exclude_from_weight_decay(var_names=list(NOT_DECAYED))

    def get_config(self):
        return {
            **super().get_config(),
            "num_layers": self.num_layers,
            "layer_decay": self.layer_decay,
            "decay_embedding": self.decay_embedding,
        }

    def _apply_weight_decay(self, variables):
        """Does nothing: weight decay is part of `update_step`."""

    def _clip_gradients(self, grads):
        """Computes the numbers of this step, which `update_step` applies; clips by global norm.

        Sparse gradients are made dense first, which sums duplicate rows. Any non-finite gradient
        makes the clipping factor non-finite, and so do gradients that are all zero; such a step
        changes nothing.
        """
        grads = [tf.convert_to_tensor(gradient) for gradient in grads]
        norm = tf.linalg.global_norm(grads)
        factor = norm / norm
        if self.global_clipnorm:
            factor *= self.global_clipnorm / tf.maximum(norm, self.global_clipnorm)
        number, is_good = tf.cast(self.iterations + 1, tf.float32), tf.math.is_finite(factor)
        power_2 = tf.pow(self.beta_2, number)
        self._step = _Step(
            rate=tf.where(is_good, self.learning_rate, 0.0),
            factor=tf.where(is_good, factor, 0.0),
            beta_1=tf.where(is_good, self.beta_1, 1.0),
            beta_2=tf.where(is_good, self.beta_2, 1.0),
            power_1=tf.pow(self.beta_1, number),
            power_2=power_2,
            epsilon=self.epsilon * tf.sqrt(1 - power_2),
        )
        return grads if self.global_clipnorm else super()._clip_gradients(grads)

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place.

        Allocating new arrays instead would fragment memory.
        """
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        step, rate, dtype = self._step, self._rate_of(variable), gradient.dtype
        if self._use_weight_decay(variable):
            variable.assign_sub(variable * tf.cast(rate * self.weight_decay, dtype))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=tf.cast(step.power_1, dtype),
            beta2_power=tf.cast(step.power_2, dtype),
            lr=tf.cast(rate, dtype),
            beta1=tf.cast(step.beta_1, dtype),
            beta2=tf.cast(step.beta_2, dtype),
            epsilon=tf.cast(step.epsilon, dtype),
            grad=tf.math.multiply_no_nan(gradient, tf.cast(step.factor, dtype)),
        )

    def _rate_of(self, variable) -> tf.Tensor:
        """Learning rate of a variable in this step."""
        layer = layer_of(variable.name, self.num_layers)
        layers_above = self.num_layers - layer if layer or self.decay_embedding else 0
        return self._step.rate * self.layer_decay**layers_above


@tf_keras.utils.register_keras_serializable(package="xlnet")
class LAMB(AdamW):
    """LAMB optimizer (You et al., 2020), for large batches.

        u = m̂ / (√v̂ + ε) + decay·w;   w = w - s·lr·(‖w‖ / ‖u‖)·u

    The ratio of norms is 1 where one of them is 0, and for biases and layer normalization weights.
    Everything else, the arguments included, is as in `AdamW`. The LAMB of tf-models-official makes
    the same updates, but has no layer-wise decay and no guard against non-finite gradients.
    """

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place."""
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        step, dtype = self._step, gradient.dtype
        gradient = tf.math.multiply_no_nan(gradient, tf.cast(step.factor, dtype))
        beta_1, beta_2 = tf.cast(step.beta_1, dtype), tf.cast(step.beta_2, dtype)
        m.assign(beta_1 * m + (1 - beta_1) * gradient)
        v.assign(beta_2 * v + (1 - beta_2) * tf.square(gradient))
        m_hat = m / tf.cast(1 - step.power_1, dtype)
        update = m_hat / (tf.sqrt(v / tf.cast(1 - step.power_2, dtype)) + self.epsilon)
        rate = tf.cast(self._rate_of(variable), dtype)
        if self._use_weight_decay(variable):
            update += self.weight_decay * variable
            sizes = tf.norm(variable), tf.norm(update)
            rate *= tf.where(tf.reduce_all(tf.stack(sizes) > 0), sizes[0] / sizes[1], 1.0)
        variable.assign_sub(rate * update)


@tf_keras.utils.register_keras_serializable(package="xlnet")
class Muon(AdamW):
    """Muon optimizer (Jordan et al., 2024): orthogonalized momentum for the matrices of layers.

        m = μ m + (1 - μ) g;   O = orthogonalized(μ m + (1 - μ) g)
        w = w - s·lr·(scale·√max(rows, columns)·O + decay·w)

    All other variables, among them embeddings and heads, are updated by `AdamW`. The factor makes
    the root mean square of an update about scale·lr, whatever the shape (Liu et al., 2025). A
    kernel of heads [D, N, H] is a matrix [D, N·H]. The Muon of Keras 3 makes the same updates, but
    is not an optimizer of `tf_keras`.

    Args:
      learning_rate: lr, a float or a learning rate schedule.
      scale: root mean square of an update of a matrix, in units of lr.
      **kwargs: further arguments of `AdamW`.
    """

    momentum = 0.95  # μ

    def __init__(self, learning_rate=0.001, scale=0.2, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.scale = scale

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place."""
        if not _LAYER_MATRIX.search(variable.name):
            super().update_step(gradient, variable)
            return
        m = self._momentums[self._index_dict[self._var_key(variable)]]
        step, dtype = self._step, gradient.dtype
        gradient = tf.math.multiply_no_nan(gradient, tf.cast(step.factor, dtype))
        # As beta_1: 1 in a step without a usable gradient.
        momentum = tf.where(step.beta_1 < 1, tf.cast(self.momentum, dtype), 1)
        m.assign(momentum * m + (1 - momentum) * gradient)
        nesterov = momentum * m + (1 - momentum) * gradient
        matrix = tf.reshape(nesterov, [variable.shape[0], -1])
        update = tf.reshape(orthogonalized(matrix), variable.shape)
        scale = self.scale * max(matrix.shape) ** 0.5
        rate = tf.cast(self._rate_of(variable), dtype)
        variable.assign_sub(rate * (scale * update + self.weight_decay * variable))


# Kernels of the encoder's layers, attention and feed-forward; on a further replica, too.
_LAYER_MATRIX = re.compile(
    r"(?:^|/)(?:layer_\d+|shared_layer)/.*_kernel(?:/replica_\d+)?(?::\d+)?$"
)

OPTIMIZERS = {"adamw": AdamW, "lamb": LAMB, "muon": Muon}


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


def create_optimizer(
    training: TrainingConfig, num_layers: int
) -> AdamW | tf_keras.mixed_precision.LossScaleOptimizer:
    """Creates the optimizer of a run, with its learning rate schedule.

    With `training.precision` `mixed_float16` it is wrapped in a `LossScaleOptimizer`: the loss is
    multiplied by a scale, so that small gradients do not underflow in float16. A step whose
    gradients overflow leaves the weights unchanged and halves the scale, down to 1; 2000 steps
    without one double it.

    Args:
      training: hyperparameters. `optimizer` is a key of `OPTIMIZERS`. With `layer_decay` α, layer
        m of L (counting from 1) has the rate lr·α^(L-m), heads have the full rate lr, and so has
        the embedding without `decay_embedding`; with it, the embedding counts as layer 0.
      num_layers: number of encoder layers, L.

    Returns:
      The optimizer.
    """
    require_type("training", training, TrainingConfig)
    require_number("num_layers", num_layers, AT_LEAST_1)
    own = {"scale": training.muon_scale} if training.optimizer == "muon" else {}
    optimizer = OPTIMIZERS[training.optimizer](
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
        **own,
    )
    if training.precision != "mixed_float16":
        return optimizer
    return tf_keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=INITIAL_LOSS_SCALE)


def layer_of(variable_name: str, num_layers: int) -> int:
    """Returns the layer of a variable: 0 for embeddings, 1 … L for encoder blocks, L for heads.

    Args:
      variable_name: name of the variable, with the path of its layer.
      num_layers: number of encoder layers, L.

    Example:
      >>> layer_of("xlnet_encoder/layer_0/attention/query_kernel:0", num_layers=12)
      1
    """
    block = re.search(r"(?:^|/)layer_(\d+)/", variable_name)
    if block:
        return int(block.group(1)) + 1
    return 0 if re.search(_EMBEDDING, variable_name) else num_layers


def orthogonalized(matrix: tf.Tensor) -> tf.Tensor:
    """Approximates U·Vᵀ of a matrix U·Σ·Vᵀ: the same singular vectors, singular values near 1.

        X = G / ‖G‖;   X = a·X + (b·A + c·A²)·X  with A = X·Xᵀ,  five times

    Args:
      matrix: G, float [rows, columns].

    Returns:
      A matrix of the same shape; zeros for zeros.

    Example:
      >>> orthogonalized(tf.constant([[3.0, 0.0], [0.0, 0.1]])).numpy().round(1)
      array([[0.7, 0. ],
             [0. , 1.1]], dtype=float32)
    """
    is_tall = matrix.shape[0] > matrix.shape[1]  # A is as small as it can be.
    x = tf.transpose(matrix) if is_tall else matrix
    x /= tf.norm(x) + _EPSILON
    a, b, c = _NEWTON_SCHULZ_COEFFICIENTS
    for _ in range(_NEWTON_SCHULZ_STEPS):
        product = tf.matmul(x, x, transpose_b=True)
        x = a * x + tf.matmul(b * product + c * tf.matmul(product, product), x)
    return tf.transpose(x) if is_tall else x
