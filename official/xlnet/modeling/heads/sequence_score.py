"""Base class of heads that score each sequence of a unit, such as the options of a question."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head
from official.xlnet.modeling.heads.sequence_summary import SequenceSummary


class SequenceScoreHead(Head):
    """Scores each of S sequences: w · summary + b, float32 [U, S]. Subclasses have the loss.

    Sequences that are all padding are masked.

    Args:
      config: sections of the experiment; uses `model` and `task.summary`.

    Attributes:
      score_name: name of the output and of the dense layer.
    """

    reads_summary = True
    score_name = "logits"

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(config, **kwargs)
        self.summary = SequenceSummary(config.model, config.task.summary, name="summary")
        setattr(self, self.score_name, self.dense(1, self.score_name))

    def build(self, input_shape):
        width = self.config.model.d_model
        self.build_parts(**{"summary": width, self.score_name: width})
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        sequences, tokens, width = content_USTD.shape[1:]
        content_XTD = tf.reshape(content_USTD, [-1, tokens, width])
        is_padding_XT = tf.reshape(inputs["is_padding"], [-1, tokens])
        score_X1 = getattr(self, self.score_name)(self.summary(content_XTD, is_padding_XT, seed))
        score_US = tf.reshape(score_X1, [-1, sequences])
        return {self.score_name: masked(score_US, inputs["is_padding"])}


def masked(score_US: tf.Tensor, is_padding_UST: tf.Tensor) -> tf.Tensor:
    """The scores, with a very low one for sequences that are all padding."""
    return tf.where(tf.reduce_all(is_padding_UST, axis=2), -1e30, score_US)
