"""Service of ranking: scores of query-document pairs."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.serving.services.base import TaskService, register_service
from official.xlnet.tasks.ranking import INPUTS, RankingConfig
from official.xlnet.tasks.ranking.task import columns_of
from official.xlnet.tokenization.graph.packing import pack, padded


@register_service("ranking")
class RankingService(TaskService):
    """Scores query-document pairs. Outputs: `score` float32 [B]. For the arguments see
    `TaskService`.
    """

    text_names = INPUTS

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        is_summary = self._task.settings(RankingConfig).scoring == "summary"
        self.num_texts, self.sequences = (2, None) if is_summary else (1, 2)

    def from_texts(self, texts):
        query, document = (self.tokenizer(texts[name]) for name in INPUTS)
        columns = columns_of(query, document, tf.range(query.nrows()), self._task)
        length = self.settings.max_length
        packed = padded(pack(columns, length, self._task.truncation_side), length)
        inputs = {}
        for name, x in packed.items():
            x_SBT = tf.reshape(x, [self.sequences or 1, -1, length])  # Queries, then documents.
            inputs[name] = tf.transpose(x_SBT, [1, 0, 2])
        return self._answer(inputs)

    @staticmethod
    def answer(score_U1, labels=()):
        """Converts the head's scores, float32 [B, 1], to the outputs of the service."""
        return {"score": score_U1[:, 0]}

    def _answer(self, inputs):
        return self.answer(self._network(inputs)["score"])
