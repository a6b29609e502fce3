"""Extractive question answering head: answer span and answerability.

    start logits    s = w · h + b                                     softmax over tokens
    end logits      e_i = dense(layer_norm(tanh(dense([h; h_i]))))    given the start i
    no answer       a = dense(tanh(dense([Σ softmax(s) h; h_CLS])))   log odds

(reference: `get_qa_outputs` of the XLNet release). Tokens that cannot be part of an answer, which
are those of the question and SEP, are masked. CLS is the start and end of "no answer".
"""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from official.xlnet.configs.sections import HeadSections
from official.xlnet.modeling.heads.base import Head, register_head
from official.xlnet.modeling.kernels.stateless_dropout import dropout

_MASKED = -1e30  # Logit of masked positions.


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
        self.end_norm = tf_keras.layers.LayerNormalization(
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
        with tf.name_scope("end_norm"):  # Layer normalization is built for a fixed rank.
            self.end_norm.build([None, None, None, width])
        super().build(input_shape)

    def call(self, content_USTD, inputs, seed=None):
        content_UTD = tf.cast(content_USTD[:, 0], tf.float32)
        can_answer_UT = inputs["can_answer"][:, 0]
        tokens = content_UTD.shape[1]
        # CLS, the last token, represents "no answer".
        is_open_UT = can_answer_UT | (tf.range(tokens) == tokens - 1)
        start_UT = tf.where(is_open_UT, self.start_logits(content_UTD)[..., 0], _MASKED)
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
            outputs |= self._beam(content_UTD, start_UT, is_open_UT, can_answer_UT, may_start_UT)
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
        return tf.where(is_open_UT[:, None], logits_UAT, _MASKED)

    def _beam(self, content_UTD, start_UT, is_open_UT, can_answer_UT, may_start_UT):
        task = self.config.task
        tokens = content_UTD.shape[1]
        start_log_UT = tf.where(may_start_UT, tf.nn.log_softmax(start_UT), _MASKED)
        start_log_UA, start_UA = tf.math.top_k(start_log_UT, min(task.start_n_top, tokens))
        end_log_UAT = tf.nn.log_softmax(self._end_logits(content_UTD, start_UA, is_open_UT))
        length_UAT = tf.range(tokens) - start_UA[..., None] + 1
        is_legal_UAT = (length_UAT >= 1) & (length_UAT <= task.answer_length)
        is_legal_UAT &= can_answer_UT[:, None]
        end_log_UAE, end_UAE = tf.math.top_k(
            tf.where(is_legal_UAT, end_log_UAT, _MASKED), min(task.end_n_top, tokens)
        )
        return {
            "start_log_prob": start_log_UA,
            "start_position": tokens - 1 - start_UA,
            "end_log_prob": end_log_UAE,
            "end_position": tokens - 1 - end_UAE,
        }

    def loss(self, outputs, labels):
        """Returns (start + end) / 2 + answerability / 2, cross entropies, float32 [U]."""

        def cross_entropy(logits_UT, position_U):
            target_U = logits_UT.shape[1] - 1 - position_U
            return tf.nn.sparse_softmax_cross_entropy_with_logits(target_U, logits_UT)

        start_U = cross_entropy(outputs["start_logits"], labels["start"])
        end_U = cross_entropy(outputs["end_logits"], labels["end"])
        answer_U = tf.nn.sigmoid_cross_entropy_with_logits(
            labels["is_impossible"], outputs["no_answer"]
        )
        return (start_U + end_U) / 2 + answer_U / 2
