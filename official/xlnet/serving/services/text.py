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
        num_sequences = long_texts.num_sequences(self._task, self.num_texts)
        has_sequences = num_sequences > 1 or self._task.long_texts != "truncate"
        self.sequences = num_sequences if has_sequences else None

    @staticmethod
    def answer(logits_BC: tf.Tensor, labels: tuple[str, ...]) -> Tensors:
        """Converts the head's logits, float32 [B, C], to the outputs of the service."""
        raise NotImplementedError

    def from_texts(self, texts):
        columns = [self.tokenizer(texts[name]) for name in self.text_names]
        return self._answer(self._packed(columns))

    def _packed(self, columns: list[tf.RaggedTensor]) -> Tensors:
        """Converts ids of texts, ragged int32 [B, (tokens)], to inputs of the network [U, S, T]."""
        features, _ = long_texts.read(columns, self._task, self.settings.max_length)
        return self.units(features)

    def _answer(self, inputs: Tensors) -> Tensors:
        return self.answer(self._network(inputs)["logits"], self._task.labels)
