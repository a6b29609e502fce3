"""Base class of services of tasks on whole texts, with windows of long texts in the graph."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.serving.services.base import TaskService
from official.xlnet.tokenization.graph.ragged import slices
from official.xlnet.tokenization.special_tokens import PAD_ID, SEGMENT_PAD


class TextService(TaskService):
    """Base class of services of tasks on whole texts. Subclasses override `answer`.

    For the arguments see `TaskService`.
    """

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self.num_texts = settings.num_texts
        if self._task.long_texts != "truncate":
            self.sequences = self._task.max_windows
        elif len(self._task.orders(self.num_texts)) > 1:
            self.sequences = len(self._task.orders(self.num_texts))

    @staticmethod
    def answer(logits_BC: tf.Tensor, labels: tuple[str, ...]) -> Tensors:
        """Converts the head's logits, float32 [B, C], to the outputs of the service."""
        raise NotImplementedError

    def from_texts(self, texts):
        return self._answer(self._read([texts[name] for name in self.text_names]))

    def _read(self, texts: list[tf.Tensor]) -> Tensors:
        """Converts texts to inputs of the network [U, S, T]."""
        return self._packed([self.tokenizer(text) for text in texts])

    def _packed(self, columns: list[tf.RaggedTensor]) -> Tensors:
        """Converts ids of texts, ragged int32 [B, (tokens)], to inputs of the network."""
        readers = {"truncate": self._cut, "windows": self._windows, "memory": self._segments}
        return readers[self._task.long_texts](columns)

    def _cut(self, columns):
        orders = self._task.orders(len(columns))
        packed = [self.pack([columns[i] for i in order]) for order in orders]
        return {name: tf.stack([x[name] for x in packed], axis=1) for name in packed[0]}

    def _segments(self, columns):
        """Splits one long sequence into segments; see `Task._segments`."""
        length, number = self.settings.max_length, self._task.max_windows
        packed = self.pack(columns, length * number)
        return {name: tf.reshape(x, [-1, number, length]) for name, x in packed.items()}

    def _windows(self, columns):
        """Sliding windows over the longest text; see `Task._windows`."""
        length, number = self.settings.max_length, self._task.max_windows
        lengths_BC = tf.stack([tf.cast(c.row_lengths(), tf.int32) for c in columns], axis=1)
        longest_B = tf.argmax(lengths_BC, axis=1, output_type=tf.int32)
        size_B = tf.reduce_max(lengths_BC, axis=1)
        others_B = tf.reduce_sum(lengths_BC, axis=1) - size_B
        room_B = tf.maximum(1, length - others_B - len(columns) - 1)
        stride_B = tf.minimum(self._task.window_stride, room_B)
        start_BW = stride_B[:, None] * tf.range(number)
        exists_BW = (start_BW + (room_B - stride_B)[:, None] < size_B[:, None]) | (start_BW == 0)
        if self.truncation_side == "left":
            limit_B = room_B + stride_B * (number - 1)
            start_BW += tf.maximum(0, size_B - limit_B)[:, None]
        row_X = tf.repeat(tf.range(tf.shape(size_B)[0]), number)
        start_X = tf.reshape(start_BW, [-1])
        windows = []
        for index, column in enumerate(columns):
            is_longest_X = tf.gather(longest_B, row_X) == index
            length_X = tf.gather(tf.cast(column.row_lengths(), tf.int32), row_X)
            first_X = tf.where(is_longest_X, tf.minimum(start_X, length_X), 0)
            kept_X = tf.minimum(length_X - first_X, tf.gather(room_B, row_X))
            kept_X = tf.where(is_longest_X, kept_X, length_X)
            windows.append(slices(column, row_X, first_X, kept_X))
        packed = self.pack(windows)
        packed = {name: tf.reshape(x, [-1, number, length]) for name, x in packed.items()}
        exists_BW1 = exists_BW[..., None]
        return {
            "token_ids": tf.where(exists_BW1, packed["token_ids"], PAD_ID),
            "segment_ids": tf.where(exists_BW1, packed["segment_ids"], SEGMENT_PAD),
            "is_padding": packed["is_padding"] | ~exists_BW1,
        }

    def _answer(self, inputs: Tensors) -> Tensors:
        return self.answer(self._network(inputs)["logits"], self._task.labels)
