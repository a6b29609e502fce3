"""Next-sentence prediction: does B follow A? XLNet does without it; the ablation compares."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.objectives.auxiliary import AuxiliaryObjective, register_auxiliary
from official.xlnet.modeling.objectives.base import Labels


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
