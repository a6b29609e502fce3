"""Multiple-choice head."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.heads.sequence_summary import SequenceSummary


@register_head("multiple_choice")
class MultipleChoiceHead(Head):
    """Multiple choice: one logit for each of S options, with softmax cross-entropy loss.

    Outputs: `logits` float32 [U, S]. Options that are all padding are masked.
    Labels: `label` int [U], index of the correct option.

    Args:
      config: sections of the experiment; uses `model` and `task.summary`.
    """

    reads_summary = True

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(config, **kwargs)
        self.summary = SequenceSummary(config.model, config.task.summary, name="summary")
        self.logits = self.dense(1, "logits")

    def build(self, input_shape):
        width = self.config.model.d_model
        self.build_parts(summary=width, logits=width)
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        choices, tokens, width = content_USTD.shape[1:]
        content_XTD = tf.reshape(content_USTD, [-1, tokens, width])
        is_padding_XT = tf.reshape(inputs["is_padding"], [-1, tokens])
        logits_X1 = self.logits(self.summary(content_XTD, is_padding_XT, seed))
        logits_US = tf.reshape(logits_X1, [-1, choices])
        exists_US = tf.reduce_any(~inputs["is_padding"], axis=2)
        return {"logits": tf.where(exists_US, logits_US, -1e30)}

    def loss(self, outputs, labels):
        label_U = tf.cast(labels["label"], tf.int32)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(label_U, outputs["logits"])
