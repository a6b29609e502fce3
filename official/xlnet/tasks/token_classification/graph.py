"""Head of classes of words, or of other units of a text."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, num_classes, register_head
from official.xlnet.modeling.kernels.stateless_dropout import dropout


@register_head("token_classification")
class TokenClassificationHead(Head):
    """Classifies each token: logits = W · dropout(content) + b, with cross-entropy loss.

    Outputs: `logits` float32 [U, T, num_logits].
    Labels: `tags` int32 [U, 1, T], -1 at tokens that the loss ignores; or, where several letters
    have one token, `tag_counts` float32 [U, 1, T, C], how many of them are of each class.

    Args:
      config: sections of the experiment; uses `model`.
      num_logits: number of tags. None: the number of `task.labels`.
    """

    def __init__(self, config: HeadSections, num_logits: int | None = None, **kwargs):
        super().__init__(config, **kwargs)
        self.num_logits = num_classes(config) if num_logits is None else num_logits
        self.logits = self.dense(self.num_logits, "logits")

    def build(self, input_shape):
        self.build_parts(logits=self.config.model.d_model)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        content_UTD = tf.cast(content_USTD[:, 0], tf.float32)
        if seed is not None:
            content_UTD = dropout(content_UTD, self.config.model.dropout, seed)
        return {"logits": self.logits(content_UTD)}

    def loss(self, outputs, labels):
        if "tag_counts" in labels:
            log_UTC = tf.nn.log_softmax(outputs["logits"])
            return -tf.reduce_sum(labels["tag_counts"][:, 0] * log_UTC, axis=[1, 2])
        tags_UT = labels["tags"][:, 0]
        loss_UT = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.maximum(tags_UT, 0), outputs["logits"]
        )
        return tf.reduce_sum(tf.where(tags_UT >= 0, loss_UT, 0.0), axis=1)

    def num_items(self, labels):
        if "tag_counts" in labels:
            return tf.reduce_sum(labels["tag_counts"], axis=[1, 2, 3])
        return tf.reduce_sum(tf.cast(labels["tags"][:, 0] >= 0, tf.float32), axis=1)
