"""Ranking service: relevance scores of query-document pairs."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.task_network import TaskNetwork
from official.xlnet.serving.services.base import Service, with_sequence_axis


class RankingService(Service):
    """Scores query-document pairs. Outputs: `score` float32 [B]. For the arguments see
    `TextService`.
    """

    text_names = ("query", "document")

    def __init__(self, model, tokenizer, settings):
        super().__init__(tokenizer, model.config.model.vocab_size, settings)
        self._task = model.config.task
        self.truncation_side = self._task.truncation_side
        self._together = self._task.scoring == "summary"
        self.num_texts = 2 if self._together else 1
        self.sequences = None if self._together else 2
        self._network = TaskNetwork(model, settings.lengths, settings.weights)

    def from_texts(self, texts):
        query = self.tokenizer(texts["query"])[:, : self._task.query_length]
        document = self.tokenizer(texts["document"])
        if self._together:
            return self._answer(with_sequence_axis(self.pack([document, query])))
        apart = [self.pack([column]) for column in (query, document)]
        return self._answer({name: tf.stack([x[name] for x in apart], 1) for name in apart[0]})

    def from_tokens(self, inputs):
        return self._answer(with_sequence_axis(inputs) if self._together else inputs)

    def _answer(self, inputs):
        return {"score": self._network(inputs)["score"][:, 0]}
