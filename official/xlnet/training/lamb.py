"""LAMB: AdamW whose update of each variable is scaled to the size of its weights."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.training.adamw import AdamW


@tf_keras.utils.register_keras_serializable(package="xlnet")
class LAMB(AdamW):
    """LAMB optimizer (You et al., 2020), for large batches.

        u = m̂ / (√v̂ + ε) + decay·w;   w = w - s·lr·(‖w‖ / ‖u‖)·u

    The ratio of norms is 1 where one of them is 0, and for biases and layer normalization weights.
    Everything else, the arguments included, is as in `AdamW`. The LAMB of tf-models-official
    computes the same, but as a legacy optimizer it cannot be used in this library's training step.
    """

    def update_step(self, gradient, variable):
        """Updates one variable and its moments in place."""
        index = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[index], self._velocities[index]
        step = self._step_of(variable)
        dtype = gradient.dtype
        gradient = tf.math.multiply_no_nan(gradient, tf.cast(step.factor, dtype))
        beta_1, beta_2 = tf.cast(step.beta_1, dtype), tf.cast(step.beta_2, dtype)
        m.assign(beta_1 * m + (1 - beta_1) * gradient)
        v.assign(beta_2 * v + (1 - beta_2) * tf.square(gradient))
        m_hat = m / tf.cast(1 - step.power_1, dtype)
        update = m_hat / (tf.sqrt(v / tf.cast(1 - step.power_2, dtype)) + self.epsilon)
        rate = tf.cast(step.rate, dtype)
        if self._use_weight_decay(variable):
            update += self.weight_decay * variable
            sizes = tf.norm(variable), tf.norm(update)
            rate *= tf.where(tf.reduce_all(tf.stack(sizes) > 0), sizes[0] / sizes[1], 1.0)
        variable.assign_sub(rate * update)
