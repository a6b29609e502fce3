"""AdamW, LAMB, Muon, and the base of all optimizers: clipping and layer-wise rate decay.

AdamW is Keras' with two changes. The update runs in TensorFlow's fused Adam kernel, which
reads and writes each array once. Layer-wise rate decay scales the update of a variable rather than
its gradient, because Adam is invariant to the scale of the gradient.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, ClassVar, NamedTuple

import tensorflow as tf

from official.xlnet.configs.registry import OPTIMIZERS
from official.xlnet.configs.training import WITHOUT_SCALE, TrainingConfig
from official.xlnet.configs.validation import require
from official.xlnet.files.public import public
from official.xlnet.files.schema import Range
from official.xlnet.modeling.ops.keras import IS_KERAS_3, LossScaleOptimizer, keras
from official.xlnet.modeling.ops.keras import AdamW as BaseAdamW
from official.xlnet.training.schedules import WarmupThenDecay

# The default of Keras. If it is too high, overflows halve it within a few steps.
INITIAL_LOSS_SCALE = 2.0**15

# Variables without weight decay: biases and layer normalization, as in the original code.
NOT_DECAYED = ("bias", "gamma", "beta")

# Names of embeddings, and of BERT's layer norm behind them.
_EMBEDDING = r"(?:word|mask|position|type)_embedding|/embeddings/"

# Coefficients of Jordan et al., with the steepest slope at 0: five iterations bring all singular
# values above about 0.01 of the norm into 0.7 … 1.2.
_NEWTON_SCHULZ_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_NEWTON_SCHULZ_STEPS = 5
_EPSILON = 1e-7


class Step(NamedTuple):
    """Numbers of one update, the same for all variables.

    Without a usable gradient, the rate is 0, and β1 and β2 are 1.

    Attributes:
      rate: learning rate, without layer-wise decay.
      factor: scale of the gradient, from clipping.
      beta_1: decay rate of the first moment, β1.
      beta_2: decay rate of the second moment, β2.
      power_1: β1 to the power of the step.
      power_2: β2 to the power of the step.
      epsilon: number that the fused kernel adds to √v, which adds ε to √v̂.
    """

    rate: tf.Tensor
    factor: tf.Tensor
    beta_1: tf.Tensor
    beta_2: tf.Tensor
    power_1: tf.Tensor
    power_2: tf.Tensor
    epsilon: tf.Tensor


class Optimizer(BaseAdamW):
    """Base class of optimizers with layer-wise learning rate decay and two moments.

    A subclass updates a variable in `update_step(gradient, variable)`, from the attribute `step`
    and the methods below. Gradients are clipped by their global norm, and dense; biases and layer
    normalization weights are not decayed. A step with a non-finite gradient, or with a gradient of
    zero, as without targets, leaves weights and moments unchanged. Moments, and what is
    added in `build` with `add_variable_from_reference`, are in checkpoints.

    Args:
      learning_rate: lr, a float or a learning rate schedule.
      num_layers: number of encoder layers, L.
      layer_decay: α in (0, 1]; the rate of layer m is scaled by s = α^(L-m) (see `layer_of`).
        1 for the same rate everywhere.
      decay_embedding: whether the embedding counts as layer 0; False for the full rate.
      **kwargs: further arguments of `keras.optimizers.AdamW`.

    Attributes:
      step: numbers of this update, a `Step`.
      settings: {further argument of the constructor: the key of `training` that it comes from}.
    """

    settings: ClassVar[dict[str, str]] = {}

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
        self.step: Step  # Set before each update by `_clip_gradients`.
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
        is_usable = tf.math.is_finite(factor)
        step = tf.cast(self.iterations + 1, tf.float32)
        power_2 = tf.pow(self.beta_2, step)
        self.step = Step(
            rate=tf.where(is_usable, self.learning_rate, 0.0),
            factor=tf.where(is_usable, factor, 0.0),
            beta_1=tf.where(is_usable, self.beta_1, 1.0),
            beta_2=tf.where(is_usable, self.beta_2, 1.0),
            power_1=tf.pow(self.beta_1, step),
            power_2=power_2,
            epsilon=self.epsilon * tf.sqrt(1 - power_2),
        )
        return grads if self.global_clipnorm else super()._clip_gradients(grads)

    def moments(self, variable) -> tuple[tf.Variable, tf.Variable]:
        """Returns the two moments of a variable, variables of its shape, 0 at the start."""
        if IS_KERAS_3:
            index = self._get_variable_index(variable)
            return self._momentums[index].value, self._velocities[index].value
        index = self._index_dict[self._var_key(variable)]
        return self._momentums[index], self._velocities[index]

    def path_of(self, variable) -> str:
        """Returns the name of a variable, with the path of its layer."""
        if IS_KERAS_3:  # An update gets the variable without its path.
            variable = self._known(variable)
        return getattr(variable, "path", variable.name)

    def clipped(self, gradient: tf.Tensor) -> tf.Tensor:
        """Returns a gradient after clipping; zeros in a step without a usable gradient."""
        return tf.math.multiply_no_nan(gradient, tf.cast(self.step.factor, gradient.dtype))

    def rate_of(self, variable) -> tf.Tensor:
        """Returns the learning rate of a variable in this step."""
        layer = layer_of(self.path_of(variable), self.num_layers)
        layers_above = self.num_layers - layer if layer or self.decay_embedding else 0
        return tf.cast(self.step.rate * self.layer_decay**layers_above, variable.dtype)

    def is_decayed(self, variable) -> bool:
        """Whether `weight_decay` applies to a variable."""
        return self._use_weight_decay(variable)


def register_optimizer(name: str) -> Callable[[type[Optimizer]], type[Optimizer]]:
    """Decorator that registers a subclass of `Optimizer`.

    Its base class is `official.xlnet.training.optimization.Optimizer`, which has clipping,
    layer-wise decay, exclusions from weight decay and the guard against non-finite gradients.

    Args:
      name: value of `training.optimizer` that selects it.

    Raises:
      ConfigError: it is not a subclass, or an optimizer is already registered under the name.

    Example:
      >>> @register_optimizer("signs")
      ... class Signs(Optimizer):
      ...     def update_step(self, gradient, variable):
      ...         variable.assign_sub(self.rate_of(variable) * tf.sign(self.clipped(gradient)))
    """

    def add(optimizer: type[Optimizer]) -> type[Optimizer]:
        is_one = isinstance(optimizer, type) and issubclass(optimizer, Optimizer)
        require(
            is_one and optimizer.update_step is not Optimizer.update_step,
            f"optimizer {name!r}",
            f"a subclass of {Optimizer.__module__}.Optimizer with an update_step, for layer-wise "
            "decay, exclusions from weight decay and the guard against non-finite gradients",
            optimizer,
        )
        if "muon_scale" not in optimizer.settings.values():
            WITHOUT_SCALE.add(name)
        return OPTIMIZERS.register(name)(optimizer)

    return add


@register_optimizer("adamw")
@keras.utils.register_keras_serializable(package="xlnet")
class AdamW(Optimizer):
    """AdamW optimizer (Loshchilov and Hutter, 2019) with layer-wise learning rate decay.

        m = β1 m + (1 - β1) g;   v = β2 v + (1 - β2) g²
        w = w - s·lr·(m̂ / (√v̂ + ε) + decay·w)

    It takes the same arguments as `Optimizer`.
    """

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place.

        Allocating new arrays instead would fragment memory.
        """
        m, v = self.moments(variable)
        step, rate, dtype = self.step, self.rate_of(variable), gradient.dtype
        if self.is_decayed(variable):
            variable.assign_sub(variable * (rate * self.weight_decay))
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=m.handle,
            v=v.handle,
            beta1_power=tf.cast(step.power_1, dtype),
            beta2_power=tf.cast(step.power_2, dtype),
            lr=rate,
            beta1=tf.cast(step.beta_1, dtype),
            beta2=tf.cast(step.beta_2, dtype),
            epsilon=tf.cast(step.epsilon, dtype),
            grad=self.clipped(gradient),
        )


@register_optimizer("lamb")
@keras.utils.register_keras_serializable(package="xlnet")
class LAMB(AdamW):
    """LAMB optimizer (You et al., 2020), for large batches.

        u = m̂ / (√v̂ + ε) + decay·w;   w = w - s·lr·(‖w‖ / ‖u‖)·u

    The ratio of norms is 1 where one of them is 0, and for biases and layer normalization weights.
    Everything else, the arguments included, is as in `AdamW`. The LAMB of tf-models-official makes
    the same updates, but has no layer-wise decay and no guard against non-finite gradients.
    """

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place."""
        m, v = self.moments(variable)
        step, dtype, gradient = self.step, gradient.dtype, self.clipped(gradient)
        beta_1, beta_2 = tf.cast(step.beta_1, dtype), tf.cast(step.beta_2, dtype)
        m.assign(beta_1 * m + (1 - beta_1) * gradient)
        v.assign(beta_2 * v + (1 - beta_2) * tf.square(gradient))
        m_hat = m / tf.cast(1 - step.power_1, dtype)
        update = m_hat / (tf.sqrt(v / tf.cast(1 - step.power_2, dtype)) + self.epsilon)
        rate = self.rate_of(variable)
        if self.is_decayed(variable):
            update += self.weight_decay * variable
            sizes = tf.norm(variable), tf.norm(update)
            rate *= tf.where(tf.reduce_all(tf.stack(sizes) > 0), sizes[0] / sizes[1], 1.0)
        variable.assign_sub(rate * update)


@register_optimizer("muon")
@keras.utils.register_keras_serializable(package="xlnet")
class Muon(AdamW):
    """Muon optimizer (Jordan et al., 2024): orthogonalized momentum for the matrices of layers.

        m = μ m + (1 - μ) g;   O = orthogonalized(μ m + (1 - μ) g)
        w = w - s·lr·(scale·√max(rows, columns)·O + decay·w)

    All other variables, among them embeddings and heads, are updated by `AdamW`. The factor makes
    the root mean square of an update about scale·lr, whatever the shape (Liu et al., 2025). A
    kernel of heads [D, N, H] is a matrix [D, N·H]. The updates equal Muon's in Keras 3.

    Args:
      learning_rate: lr, a float or a learning rate schedule.
      scale: root mean square of an update of a matrix, in units of lr.
      **kwargs: further arguments of `AdamW`.
    """

    momentum = 0.95  # μ
    settings = {"scale": "muon_scale"}

    def __init__(self, learning_rate=0.001, scale=0.2, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self.scale = scale

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place."""
        if not _LAYER_MATRIX.search(self.path_of(variable)):
            super().update_step(gradient, variable)
            return
        m, _ = self.moments(variable)
        dtype, gradient = gradient.dtype, self.clipped(gradient)
        # As beta_1: 1 in a step without a usable gradient.
        momentum = tf.where(self.step.beta_1 < 1, tf.cast(self.momentum, dtype), 1)
        m.assign(momentum * m + (1 - momentum) * gradient)
        nesterov = momentum * m + (1 - momentum) * gradient
        matrix = tf.reshape(nesterov, [variable.shape[0], -1])
        update = tf.reshape(orthogonalized(matrix), variable.shape)
        scale = self.scale * max(matrix.shape) ** 0.5
        change = scale * update + self.weight_decay * variable
        variable.assign_sub(self.rate_of(variable) * change)


# Kernels of the encoder's layers, attention and feed-forward; on a further replica, too.
_LAYER_MATRIX = re.compile(
    r"(?:^|/)(?:layer_\d+|shared_layer)/.*_kernel(?:/replica_\d+)?(?::\d+)?$"
)


@public()
def create_optimizer(
    training: TrainingConfig, num_layers: Annotated[int, Range(1)]
) -> Optimizer | LossScaleOptimizer:
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
    optimizer_class = OPTIMIZERS[training.optimizer]
    further_arguments = {
        name: getattr(training, key) for name, key in optimizer_class.settings.items()
    }
    optimizer = optimizer_class(
        learning_rate=WarmupThenDecay(**training.as_dict()),
        weight_decay=training.weight_decay,
        beta_1=training.adam_beta_1,
        beta_2=training.adam_beta_2,
        epsilon=training.adam_epsilon,
        global_clipnorm=training.clip_norm or None,
        num_layers=num_layers,
        layer_decay=training.layer_decay,
        decay_embedding=training.decay_embedding,
        **further_arguments,
    )
    if training.precision != "mixed_float16":
        return optimizer
    return LossScaleOptimizer(optimizer, initial_scale=INITIAL_LOSS_SCALE)


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
