"""Base class of heads that compute logits from a summary of whole texts."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import MASKED, Head, num_classes
from official.xlnet.modeling.heads.sequence_summary import SequenceSummary
from official.xlnet.modeling.ops.shapes import sizes


class SummaryHead(Head):
    """Dense layer on a sequence summary: logits = W · summary + b, float32 [U, num_logits].

    The windows or segments of a long text (S > 1) are summarized separately, and the summaries of
    all that are not empty are pooled (`task.pooling`): with `task.long_texts` `memory`, those that
    `task.pooled_segments` selects.

    Args:
      config: sections of the experiment; uses `model` and `task`.
      num_logits: number of outputs. None: the number of `task.labels`.

    Attributes:
      logits_name: name of the output and of the dense layer.
    """

    reads_summary = True
    logits_name = "logits"

    def __init__(self, config: HeadSections, num_logits: int | None = None, **kwargs):
        super().__init__(config, **kwargs)
        self.num_logits = num_classes(config) if num_logits is None else num_logits
        self.summary = SequenceSummary(config.model, config.task.summary, name="summary")
        setattr(self, self.logits_name, self.dense(self.num_logits, self.logits_name))

    def build(self, input_shape):
        width = self.config.model.d_model
        self.build_parts(**{"summary": width, self.logits_name: width})
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        summary_USD, has_text_US = self.summaries(content_USTD, inputs, seed)
        return {self.logits_name: self.scores(self._pool(summary_USD, has_text_US[..., None]))}

    def scores(self, summary: tf.Tensor) -> tf.Tensor:
        """Computes logits of summaries, float [..., D]."""
        return getattr(self, self.logits_name)(summary)

    def summaries(
        self, content_USTD: tf.Tensor, inputs: dict[str, tf.Tensor], seed: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Summarizes sequences; for the arguments see `Head`.

        Returns:
          The summaries float32 [U, S, D], and which sequences have text, bool [U, S].
        """
        # With memory, there may be vectors of the last segment only.
        is_padding_UST = inputs["is_padding"][:, -content_USTD.shape[1] :]
        _, sequences, tokens, width = sizes(content_USTD)
        content_XTD = tf.reshape(content_USTD, [-1, tokens, width])
        is_padding_XT = tf.reshape(is_padding_UST, [-1, tokens])
        summary_XD = self.summary(content_XTD, is_padding_XT, seed)
        summary_USD = tf.reshape(summary_XD, [-1, sequences, width])
        return summary_USD, tf.reduce_any(~is_padding_UST, axis=2)

    def _pool(self, summary_USD, has_text_US1):
        if self.config.task.pooling == "max":
            return tf.reduce_max(tf.where(has_text_US1, summary_USD, -1.0), axis=1)
        weight_US1 = tf.cast(has_text_US1, tf.float32)
        total_UD = tf.reduce_sum(summary_USD * weight_US1, axis=1)
        return tf.math.divide_no_nan(total_UD, tf.reduce_sum(weight_US1, axis=1))


class SequenceScoreHead(SummaryHead):
    """Scores each of S sequences: w · summary + b, float32 [U, S]. Subclasses have the loss.

    Sequences that are all padding are masked.

    Args:
      config: sections of the experiment; uses `model` and `task.summary`.
    """

    def __init__(self, config: HeadSections, num_logits: int = 1, **kwargs):
        super().__init__(config, num_logits, **kwargs)

    def call(self, content_USTD, inputs, seed=None):
        summary_USD, has_text_US = self.summaries(content_USTD, inputs, seed)
        score_US = self.scores(summary_USD)[..., 0]
        return {self.logits_name: tf.where(has_text_US, score_US, MASKED)}
