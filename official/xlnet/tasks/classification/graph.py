"""Heads of text classification, multi-label classification and regression."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.registry import ANSWER_MODULES
from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.heads.summary_head import SummaryHead
from official.xlnet.modeling.layers.losses import label_cross_entropy
from official.xlnet.modeling.ops.shapes import as_vector
from official.xlnet.tasks.settings import AnswerModuleConfig, LabelConfig


@ANSWER_MODULES.register("summary")
class ClassificationHead(SummaryHead):
    """Single-label classification with cross-entropy loss. Labels: `label` int [U], or [U, 1].

    With `task.label_smoothing` ε, the target distribution is 1 - ε on the label plus ε / C on each
    of the C classes.
    """

    def loss(self, outputs, labels):
        smoothing = self.config.task.settings(LabelConfig).label_smoothing
        return label_cross_entropy(outputs["logits"], labels["label"], smoothing)

    def label_rule(self):
        from official.xlnet.modeling.heads.label_rule import rule_of_classes

        return rule_of_classes(self.config.task)


@register_head("classification")
def classification_head(config: HeadSections, **kwargs) -> Head:
    """Creates the classification head that `task.answer_module` selects."""
    return ANSWER_MODULES[config.task.settings(AnswerModuleConfig).answer_module](config, **kwargs)


@register_head("multi_label")
class MultiLabelHead(SummaryHead):
    """Multi-label classification with binary cross-entropy loss, averaged over classes.

    Labels: `label` float32 [U, C], 0 or 1.
    """

    def loss(self, outputs, labels):
        loss_UC = tf.nn.sigmoid_cross_entropy_with_logits(
            tf.cast(labels["label"], tf.float32), outputs["logits"]
        )
        return tf.reduce_mean(loss_UC, axis=1)

    def label_rule(self):
        from official.xlnet.modeling.heads.label_rule import LabelRule

        task = self.config.task
        return LabelRule(task.name, 0, 1, num_in_row=len(task.labels))


@register_head("regression")
class RegressionHead(SummaryHead):
    """Regression of one number with squared-error loss. Labels: `label` float32 [U], or [U, 1].

    The output is scale · z + mean, in the units of the labels; the loss is computed on z:

        z = W · summary + b,   loss = (z - (label - mean) / scale)²

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, num_logits: int = 1, **kwargs):
        super().__init__(config, num_logits, **kwargs)
        self.mean, self.scale = config.task.label_mean_and_scale()

    def call(self, content_USTD, inputs, seed=None):
        return {
            "logits": super().call(content_USTD, inputs, seed)["logits"] * self.scale + self.mean
        }

    def loss(self, outputs, labels):
        label_U = as_vector(tf.cast(labels["label"], tf.float32))
        return tf.square((outputs["logits"][:, 0] - label_U) / self.scale)

    def label_rule(self):
        from official.xlnet.modeling.heads.label_rule import LabelRule

        return LabelRule(self.config.task.name)
