"""Capitalization prediction (ERNIE 2.0): does the predicted word begin with a capital letter?"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.objectives.auxiliary import AuxiliaryObjective, register_auxiliary
from official.xlnet.modeling.objectives.base import Labels, prediction_positions, prediction_rows


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
        positions_BP = prediction_positions(task.inputs)
        case_BP = tf.gather(batch["letter_case"], positions_BP, batch_dims=1)
        weight_BP = task.mask_BP * tf.cast(case_BP >= 0, tf.float32)
        return Labels(tf.maximum(case_BP, 0), weight_BP)

    def hidden_states(self, outputs, inputs):
        return prediction_rows(outputs, inputs)
