"""Auxiliary objectives of BERT and ERNIE 2.0: questions about sentences, words and documents."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.objectives.auxiliary import AuxiliaryObjective, register_auxiliary
from official.xlnet.modeling.objectives.base import Labels, prediction_rows
from official.xlnet.tokenization.special_tokens import EOD_ID, SEGMENT_A, SEGMENT_B


@register_auxiliary("next_sentence")
class NextSentence(AuxiliaryObjective):
    """CLS predicts whether segment B follows segment A (Devlin et al., BERT, section 3.1).

    Args:
      config: sections of the experiment; the objective must read B, so it is not `causal`.
    """

    is_apart = True  # Since before there were other auxiliary objectives.

    def labels(self, batch, task):
        return Labels(batch["is_next"][:, None], tf.ones_like(task.mask_BP[:, :1]))

    def hidden_states(self, outputs, inputs):
        return outputs["content"][:, -1:]


@register_auxiliary("capitalization")
class Capitalization(AuxiliaryObjective):
    """At a target, predicts whether its word begins with a capital letter.

    The pieces of a cased vocabulary show their case, so the question is asked where the language
    model predicts a token that it does not see. ERNIE's vocabulary is uncased, and the question
    is asked everywhere. It counts for pieces that begin a word with a letter that has a case.

    Args:
      config: sections of the experiment; text must not be lower-cased, and the hidden state at
        a position must predict the token there (not `causal`, which predicts the next one).
    """

    def labels(self, batch, task):
        name = "content_positions" if "content_positions" in task.inputs else "target_positions"
        case_BP = tf.gather(batch["letter_case"], task.inputs[name], batch_dims=1)
        weight_BP = task.mask_BP * tf.cast(case_BP >= 0, tf.float32)
        return Labels(tf.maximum(case_BP, 0), weight_BP)

    def hidden_states(self, outputs, inputs):
        return prediction_rows(outputs, inputs)


@register_auxiliary("token_document")
class TokenDocument(AuxiliaryObjective):
    """Token-document relation: whether a token of the reuse part occurs in the text that follows.

    That text is A, and B where B follows A, up to the end of the document. The hidden states of
    the reuse part do not depend on it: the first half of a window does not attend to the second.
    So the question is about a segment that is not read, as in ERNIE; a token that is seen twice
    would need no understanding. It counts for tokens whose document continues into A.

    Args:
      config: sections of the experiment; there must be a reuse part that does not attend to
        what follows it.
    """

    def labels(self, batch, task):
        token_ids_BT, segment_ids_BT = batch["token_ids"], batch["segment_ids"]
        is_text_BT, length = batch["can_be_target"], self.config.data.reuse_len
        is_end_BT = tf.cast(token_ids_BT == EOD_ID, tf.int32)
        # No document ends between a token and the end of the reuse part, or the start of A.
        ends_after_BR = tf.cumsum(is_end_BT[:, :length], axis=1, reverse=True)
        ends_before_BF = tf.cumsum(is_end_BT[:, length:], axis=1)
        b_follows_B1 = batch["is_next"][:, None] == 1
        is_following_BF = (segment_ids_BT == SEGMENT_A) | (
            (segment_ids_BT == SEGMENT_B) & b_follows_B1
        )
        is_following_BF = (is_following_BF & is_text_BT)[:, length:] & (ends_before_BF == 0)
        is_same_BRF = token_ids_BT[:, :length, None] == token_ids_BT[:, None, length:]
        occurs_BR = tf.reduce_any(is_same_BRF & is_following_BF[:, None], axis=2)
        continues_B1 = tf.reduce_any(is_following_BF, axis=1, keepdims=True)
        counts_BR = is_text_BT[:, :length] & (ends_after_BR == 0) & continues_B1
        return Labels(tf.cast(occurs_BR, tf.int32), tf.cast(counts_BR, tf.float32))

    def hidden_states(self, outputs, inputs):
        return outputs["content"][:, : self.config.data.reuse_len]
