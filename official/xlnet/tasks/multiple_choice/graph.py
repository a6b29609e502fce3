"""Head of multiple choice."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.heads.base import register_head
from official.xlnet.modeling.heads.summary_head import SequenceScoreHead
from official.xlnet.modeling.ops.shapes import as_vector


@register_head("multiple_choice")
class MultipleChoiceHead(SequenceScoreHead):
    """Multiple choice: one logit for each of S options, with softmax cross-entropy loss.

    Outputs: `logits` float32 [U, S]. Options that are all padding are masked.
    Labels: `label` int [U], or [U, 1], index of the correct option.

    Args:
      config: sections of the experiment; uses `model` and `task.summary`.
    """

    def loss(self, outputs, labels):
        label_U = as_vector(tf.cast(labels["label"], tf.int32))
        return tf.nn.sparse_softmax_cross_entropy_with_logits(label_U, outputs["logits"])

    def label_rule(self):
        from official.xlnet.modeling.heads.label_rule import LabelRule

        return LabelRule(self.config.task.name, 0, are_classes=True)  # S may differ by batch.
