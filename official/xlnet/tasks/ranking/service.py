"""Ranking service: relevance scores of query-document pairs."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    with_sequence_axis,
)
from official.xlnet.tasks.ranking import INPUTS


@register_service("ranking")
class RankingService(TaskService):
    """Scores query-document pairs. Outputs: `score` float32 [B]. For the arguments see
    `TaskService`.
    """

    text_names = INPUTS

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self._together = self._task.scoring == "summary"
        self.num_texts = 2 if self._together else 1
        self.sequences = None if self._together else 2

    def from_texts(self, texts):
        query = self.tokenizer(texts["query"])[:, : self._task.query_length]
        document = self.tokenizer(texts["document"])
        if self._together:
            return self._answer(with_sequence_axis(self.pack([document, query])))
        apart = [self.pack([column]) for column in (query, document)]
        return self._answer({name: tf.stack([x[name] for x in apart], 1) for name in apart[0]})

    @staticmethod
    def answer(score_U1, labels=()):
        """Converts the head's scores, float32 [B, 1], to the outputs of the service."""
        return {"score": score_U1[:, 0]}

    def _answer(self, inputs):
        return self.answer(self._network(inputs)["score"])
