"""Service of numbers of words or letters."""

from __future__ import annotations

from official.xlnet.serving.services.base import register_service, with_sequence_axis
from official.xlnet.tasks.token_classification.service import TagService


@register_service("token_regression")
class NumberService(TagService):
    """Splits texts as `TagService`, and answers with a number for each word or letter.

    Outputs:
      words: string [B, W], padded on the right with "".
      scores: float32 [B, W], padded with 0.
    """

    def from_tokens(self, inputs):
        """Computes the score of each token; the first token of a word has its score."""
        return {"scores": self._network(with_sequence_axis(inputs))["logits"][..., 0]}

    def answers(self, logits_BWC, is_word_BW1):
        return {"scores": (logits_BWC * is_word_BW1)[..., 0]}
