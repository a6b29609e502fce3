"""Base class of services of tasks on whole texts."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.serving.services.base import TaskService
from official.xlnet.tasks import long_texts


class TextService(TaskService):
    """Base class of services of tasks on whole texts. Subclasses override `answer`.

    For the arguments see `TaskService`.
    """

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self.num_texts = settings.num_texts
        number = long_texts.num_sequences(self._task, self.num_texts)
        self.sequences = number if number > 1 or self._task.long_texts != "truncate" else None

    @staticmethod
    def answer(logits_BC: tf.Tensor, labels: tuple[str, ...]) -> Tensors:
        """Converts the head's logits, float32 [B, C], to the outputs of the service."""
        raise NotImplementedError

    def from_texts(self, texts):
        return self._answer(self._packed([self.tokenizer(texts[name]) for name in self.text_names]))

    def _packed(self, columns: list[tf.RaggedTensor]) -> Tensors:
        """Converts ids of texts, ragged int32 [B, (tokens)], to inputs of the network [U, S, T]."""
        return self.units(long_texts.read(columns, self._task, self.settings.max_length)[0])

    def _answer(self, inputs: Tensors) -> Tensors:
        return self.answer(self._network(inputs)["logits"], self._task.labels)
