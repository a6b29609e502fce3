"""Head of numbers of words or letters."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import register_head
from official.xlnet.tasks.token_classification.graph import TokenClassificationHead


@register_head("token_regression")
class TokenRegressionHead(TokenClassificationHead):
    """Predicts a number for each token, with squared-error loss.

    The output is scale · z + mean, and the loss is computed on z, as in `RegressionHead`. Labels:
    `numbers` float32 [U, 1, T, 3]: of the words or letters of a token, how many there are, the
    mean of their labels, and the sum of their squared distances from it.

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, num_logits: int = 1, **kwargs):
        super().__init__(config, num_logits, **kwargs)
        self.mean, self.scale = config.task.label_mean_and_scale()

    def call(self, content_USTD, inputs, seed=None):
        outputs = super().call(content_USTD, inputs, seed)
        return {"logits": outputs["logits"] * self.scale + self.mean}

    def loss(self, outputs, labels):
        number_UT, mean_UT, squares_UT = tf.unstack(labels["numbers"][:, 0], axis=-1)
        error_UT = number_UT * tf.square((outputs["logits"][..., 0] - mean_UT) / self.scale)
        return tf.reduce_sum(error_UT + squares_UT / self.scale**2, axis=1)

    def num_items(self, labels):
        return tf.reduce_sum(labels["numbers"][:, 0, :, 0], axis=1)
