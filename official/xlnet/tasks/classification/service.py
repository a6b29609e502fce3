"""Services of text classification, multi-label classification and regression."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.serving.services.base import register_service, repeated
from official.xlnet.serving.services.text import TextService


@register_service("classification")
class ClassificationService(TextService):
    """Classification of texts. For the arguments see `TaskService`.

    Outputs: `label` string [B], `labels` string [B, C], `probabilities` and `logits` float32
    [B, C].
    """

    @staticmethod
    def answer(logits_BC, labels):
        best_B = tf.argmax(logits_BC, axis=1)
        return {
            "label": tf.gather(tf.constant(labels), best_B),
            "labels": repeated(labels, tf.shape(logits_BC)[0]),
            "probabilities": tf.nn.softmax(logits_BC),
            "logits": tf.identity(logits_BC),
        }


@register_service("multi_label")
class MultiLabelService(TextService):
    """Multi-label classification. For the arguments see `TaskService`.

    Outputs: `labels` string [B, C], `probabilities` and `logits` float32 [B, C].
    """

    @staticmethod
    def answer(logits_BC, labels):
        return {
            "labels": repeated(labels, tf.shape(logits_BC)[0]),
            "probabilities": tf.sigmoid(logits_BC),
            "logits": tf.identity(logits_BC),
        }


@register_service("regression")
class RegressionService(TextService):
    """Regression. Output: `score` float32 [B]. For the arguments see `TaskService`."""

    @staticmethod
    def answer(logits_B1, labels):
        return {"score": logits_B1[:, 0]}
