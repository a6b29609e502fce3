"""Head of extractive question answering: answer span and answerability.

    start logits    s = w · h + b                                     softmax over tokens
    end logits      e_i = dense(layer_norm(tanh(dense([h; h_i]))))    given the start i
    no answer       a = dense(tanh(dense([Σ softmax(s) h; h_CLS])))   log odds

(reference: `get_qa_outputs` of the XLNet release). Tokens that cannot be part of an answer (the
question and SEP) are masked. CLS is the start and end of "no answer".
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import MASKED, Head, register_head
from official.xlnet.modeling.kernels.stateless_dropout import dropout
from official.xlnet.modeling.ops.initializers import build_layers
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tasks.question_answering import AnswerConfig


@register_head("question_answering")
class QuestionAnsweringHead(Head):
    """Predicts the start, the end given the start, and whether there is an answer.

    Positions count from the right end, CLS being 0, so they do not depend on padding.

    Additional inputs:
      can_answer: bool [U, 1, T], True for tokens of the paragraph.
      may_start: bool [U, 1, T], True for paragraph tokens with maximum context in this window.

    Labels:
      start, end: int32 [U], first and last position of the answer.
      is_impossible: float32 [U], 1 if there is no answer.

    Outputs:
      start_log_prob, start_position: [U, A], the A best starts, best first.
      end_log_prob, end_position: [U, A, E], the E best ends for each start, best first; spans
        that are invalid or too long are masked.
      no_answer: [U], log odds that there is no answer.
      start_logits: [U, T].
      end_logits: [U, T], given the labeled start; only if `start` is among the inputs.

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, **kwargs):
        super().__init__(config, **kwargs)
        width = config.model.d_model
        self.start_logits = self.dense(1, "start_logits")
        self.end_hidden = self.dense(width, "end_hidden", activation="tanh")
        self.end_norm = keras.layers.LayerNormalization(
            epsilon=1e-12, name="end_norm", dtype="float32"
        )
        self.end_logits = self.dense(1, "end_logits")
        self.answer_hidden = self.dense(width, "answer_hidden", activation="tanh")
        self.answer_logits = self.dense(1, "answer_logits", use_bias=False)

    def build(self, input_shape):
        width = self.config.model.d_model
        self.build_parts(
            start_logits=width,
            end_hidden=2 * width,
            end_logits=width,
            answer_hidden=2 * width,
            answer_logits=width,
        )
        # Layer normalization is built for a fixed rank.
        build_layers(self.end_norm, input_shape=[None, None, None, width])
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        content_UTD = tf.cast(content_USTD[:, 0], tf.float32)
        can_answer_UT = inputs["can_answer"][:, 0]
        tokens = content_UTD.shape[1]
        # CLS, the last token, represents "no answer".
        is_open_UT = can_answer_UT | (tf.range(tokens) == tokens - 1)
        start_UT = tf.where(is_open_UT, self.start_logits(content_UTD)[..., 0], MASKED)
        probability_UT = tf.nn.softmax(start_UT)
        start_UD = tf.einsum("ut,utd->ud", probability_UT, content_UTD)
        hidden_UD = self.answer_hidden(tf.concat([start_UD, content_UTD[:, -1]], axis=-1))
        if seed is not None:
            hidden_UD = dropout(hidden_UD, self.config.model.dropout, seed)
        outputs = {"start_logits": start_UT, "no_answer": self.answer_logits(hidden_UD)[:, 0]}
        if "start" in inputs:
            start_U1 = tokens - 1 - inputs["start"][:, None]
            outputs["end_logits"] = self._end_logits(content_UTD, start_U1, is_open_UT)[:, 0]
        if seed is None:
            may_start_UT = inputs["may_start"][:, 0] & can_answer_UT
            start_log_UT = tf.where(may_start_UT, tf.nn.log_softmax(start_UT), MASKED)
            num_starts = min(self._task.start_n_top, tokens)
            start_log_UA, start_UA = tf.math.top_k(start_log_UT, num_starts)
            end_log_UAT = tf.nn.log_softmax(self._end_logits(content_UTD, start_UA, is_open_UT))
            end_log_UAT = tf.where(self._is_span(start_UA, can_answer_UT), end_log_UAT, MASKED)
            outputs |= self._spans(start_log_UA, start_UA, end_log_UAT)
        return outputs

    def _end_logits(self, content_UTD, start_UA, is_open_UT):
        """Returns end logits [U, A, T], given each of A starts."""
        start_UAD = tf.gather(content_UTD, start_UA, batch_dims=1)
        num_starts, tokens = start_UA.shape[1], content_UTD.shape[1]
        hidden_UATX = tf.concat(
            [
                tf.repeat(content_UTD[:, None], num_starts, axis=1),
                tf.repeat(start_UAD[:, :, None], tokens, axis=2),
            ],
            axis=-1,
        )
        logits_UAT = self.end_logits(self.end_norm(self.end_hidden(hidden_UATX)))[..., 0]
        return tf.where(is_open_UT[:, None], logits_UAT, MASKED)

    @property
    def _task(self) -> AnswerConfig:
        return self.config.task.settings(AnswerConfig)

    def _is_span(self, start_UA, can_answer_UT):
        """Whether a token may be the end of an answer with each of A starts, bool [U, A, T]."""
        length_UAT = tf.range(can_answer_UT.shape[1]) - start_UA[..., None] + 1
        is_legal_UAT = (length_UAT >= 1) & (length_UAT <= self._task.answer_length)
        return is_legal_UAT & can_answer_UT[:, None]

    def _spans(self, start_log_UA, start_UA, end_log_UAT):
        """Outputs for the A best starts: the E best ends for each of them."""
        tokens = end_log_UAT.shape[2]
        num_ends = min(self._task.end_n_top, tokens)
        end_log_UAE, end_UAE = tf.math.top_k(end_log_UAT, num_ends)
        return {
            "start_log_prob": start_log_UA,
            "start_position": tokens - 1 - start_UA,
            "end_log_prob": end_log_UAE,
            "end_position": tokens - 1 - end_UAE,
        }

    def loss(self, outputs, labels):
        """Returns (start + end) / 2 + answerability / 2, cross entropies, float32 [U]."""
        answer_U = tf.nn.sigmoid_cross_entropy_with_logits(
            labels["is_impossible"], outputs["no_answer"]
        )
        return self._span_loss(outputs, labels) + answer_U / 2

    def _span_loss(self, outputs, labels):
        """Returns (start + end) / 2, cross entropies, float32 [U]."""

        def cross_entropy(logits_UT, position_U):
            target_U = logits_UT.shape[1] - 1 - position_U
            return tf.nn.sparse_softmax_cross_entropy_with_logits(target_U, logits_UT)

        start_U = cross_entropy(outputs["start_logits"], labels["start"])
        end_U = cross_entropy(outputs["end_logits"], labels["end"])
        return (start_U + end_U) / 2


@register_head("question_answering_simple")
class SimpleAnsweringHead(QuestionAnsweringHead):
    """Predicts start and end, each by itself: the head of HF's `XLNetForQuestionAnsweringSimple`.

    Inputs and outputs are the same as in `QuestionAnsweringHead`; all spans are compared:

        log p(start, end) = log softmax(s)_start + log softmax(e)_end
        no_answer         = log p(CLS, CLS) - max log p(start, end)

    Args:
      config: sections of the experiment; uses `model` and `task`.
    """

    def __init__(self, config: HeadSections, **kwargs):
        super(QuestionAnsweringHead, self).__init__(config, **kwargs)
        self.span_logits = self.dense(2, "span_logits")

    def build(self, input_shape):
        self.build_parts(span_logits=self.config.model.d_model)
        super(QuestionAnsweringHead, self).build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        can_answer_UT, tokens = inputs["can_answer"][:, 0], content_USTD.shape[2]
        is_open_UT = can_answer_UT | (tf.range(tokens) == tokens - 1)
        logits_UT2 = self.span_logits(tf.cast(content_USTD[:, 0], tf.float32))
        start_UT, end_UT = tf.unstack(tf.where(is_open_UT[..., None], logits_UT2, MASKED), axis=-1)
        start_log_UT, end_log_UT = tf.nn.log_softmax(start_UT), tf.nn.log_softmax(end_UT)
        is_legal_UTT = self._is_span(tf.range(tokens)[None], can_answer_UT)
        is_legal_UTT &= (inputs["may_start"][:, 0] & can_answer_UT)[..., None]
        end_log_UTT = tf.where(is_legal_UTT, end_log_UT[:, None], MASKED)
        best_UT = start_log_UT + tf.reduce_max(end_log_UTT, axis=-1)
        best_UA, start_UA = tf.math.top_k(best_UT, min(self._task.start_n_top, tokens))
        start_log_UA = tf.gather(start_log_UT, start_UA, batch_dims=1)
        end_log_UAT = tf.gather(end_log_UTT, start_UA, batch_dims=1)
        return self._spans(start_log_UA, start_UA, end_log_UAT) | {
            "start_logits": start_UT,
            "end_logits": end_UT,
            "no_answer": start_log_UT[:, -1] + end_log_UT[:, -1] - best_UA[:, 0],
        }

    def loss(self, outputs, labels):
        """Returns (start + end) / 2, cross entropies, float32 [U]."""
        return self._span_loss(outputs, labels)
