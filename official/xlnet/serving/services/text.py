"""Text classification, multi-label classification, regression and multi-task services."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.data.graph_names import graph_names
from official.xlnet.inference.network.length_buckets import Tensors
from official.xlnet.inference.network.task_network import TaskNetwork
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.serving.graph.settings import Settings
from official.xlnet.serving.services.base import Service, repeated, with_sequence_axis
from official.xlnet.tokenization.graph.ragged import slices
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import PAD_ID, SEGMENT_PAD

_SIGNATURES = ("serving_default", "token_ids", "examples")


class TextService(Service):
    """Service of text classification, multi-label classification and regression.

    Outputs:
      classification: `label` string [B], `labels` string [B, C], `probabilities` and `logits`
        float32 [B, C].
      multi-label: `labels`, `probabilities` and `logits`, as above.
      regression: `score` float32 [B].

    Args:
      model: the fine-tuned model.
      tokenizer: in-graph tokenizer.
      settings: export settings.
    """

    def __init__(self, model: XLNetTaskModel, tokenizer: GraphTokenizer, settings: Settings):
        super().__init__(tokenizer, model.config.model.vocab_size, settings)
        self._task = model.config.task
        self.truncation_side = self._task.truncation_side
        self.num_texts = settings.num_texts
        if self._task.long_texts != "truncate":
            self.sequences = self._task.max_windows
        self._network = TaskNetwork(model, settings.lengths, settings.weights)

    def from_texts(self, texts):
        return self._answer(self._read([texts[name] for name in self.text_names]))

    def from_tokens(self, inputs):
        return self._answer(with_sequence_axis(inputs) if self.sequences is None else inputs)

    def _read(self, texts: list[tf.Tensor]) -> Tensors:
        """Converts texts to inputs of the network [U, S, T]."""
        readers = {"truncate": self._cut, "windows": self._windows, "memory": self._segments}
        return readers[self._task.long_texts]([self.tokenizer(text) for text in texts])

    def _cut(self, columns):
        return with_sequence_axis(self.pack(columns))

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
        logits = self._network(inputs)["logits"]
        return _ANSWERS[self._task.name](logits, self._task.labels)


class MultiTaskService(TextService):
    """Multi-task service.

    Each task reads its own texts. `serving_default` takes the texts of all tasks and returns the
    outputs of each, as `<task>_<output>`. The signature `<task>` takes the texts of one task and
    returns its outputs, as the service of that task alone.
    """

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        subtasks = self._task.subtasks
        self._texts = settings.texts_of_subtasks or (settings.text_columns,) * len(subtasks)
        self._names = graph_names(subtasks, "task", _SIGNATURES)

    @property
    def texts_of_signatures(self):
        return super().texts_of_signatures | dict(zip(self._names, self._texts, strict=True))

    def signatures(self):
        alone = {
            name: self._function(functools.partial(self._serve_one, number))
            for number, name in enumerate(self._names)
        }
        return super().signatures() | {
            name: function.get_concrete_function(**self.text_specs(self.texts_of_signatures[name]))
            for name, function in alone.items()
        }

    def from_texts(self, texts):
        outputs: Tensors = {}
        for names in dict.fromkeys(self._texts):  # Texts that tasks share are read once.
            logits = self._network(self._read([texts[name] for name in names]))
            numbers = [number for number, its in enumerate(self._texts) if its == names]
            outputs |= self._answers_of(numbers, logits)
        return outputs

    def _serve_one(self, number, **texts):
        texts = self.checked(texts)
        logits = self._network(self._read([texts[name] for name in self._texts[number]]))
        return self._answer_of(number, logits)

    def _answer(self, inputs):
        return self._answers_of(range(len(self._names)), self._network(inputs))

    def _answers_of(self, numbers, logits):
        return {
            f"{self._names[number]}_{output}": x
            for number in numbers
            for output, x in self._answer_of(number, logits).items()
        }

    def _answer_of(self, number, logits):
        name = self._task.subtasks[number]
        labels = [label for label in self._task.labels if label.startswith(f"{name}/")]
        own = tuple(label.removeprefix(f"{name}/") for label in labels)
        return (_classes if own else _number)(logits[name], own)


def _classes(logits_BC, labels):
    """Returns the best class, and the probabilities with class names."""
    best_B = tf.argmax(logits_BC, axis=1)
    return {
        "label": tf.gather(tf.constant(labels), best_B),
        "labels": repeated(labels, tf.shape(logits_BC)[0]),
        "probabilities": tf.nn.softmax(logits_BC),
        "logits": tf.identity(logits_BC),
    }


def _several_classes(logits_BC, labels):
    return {
        "labels": repeated(labels, tf.shape(logits_BC)[0]),
        "probabilities": tf.sigmoid(logits_BC),
        "logits": tf.identity(logits_BC),
    }


def _number(logits_B1, labels):
    return {"score": logits_B1[:, 0]}


_ANSWERS: dict[str, Callable] = {
    "classification": _classes,
    "multi_label": _several_classes,
    "regression": _number,
}
