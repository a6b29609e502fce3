"""Service of classes of words, or of other units of a text."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.configs.registry import LABEL_UNITS
from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    repeated,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import checked_windows
from official.xlnet.tasks.token_classification import TagConfig
from official.xlnet.tasks.token_classification.windows import MARKS


@register_service("token_classification")
class TagService(TaskService):
    """Splits texts into words, or what `task.label_unit` says, and tags these.

    For the arguments see `TaskService`.

    Outputs:
      words, tags: string [B, W], padded on the right with "".
      probabilities: float32 [B, W, C], padded with 0.
      labels: string [B, C].
    """

    text_names = ("text",)
    per_token = ("logits",)

    _task: TagConfig

    def __init__(self, model, tokenizer, settings):
        super().__init__(model, tokenizer, settings)
        self._split = LABEL_UNITS[self._task.label_unit]().splitter(tokenizer)

    def from_texts(self, texts):
        check_number = functools.partial(checked_windows, "text", most=self.settings.max_windows)
        words, windows = self._split(texts["text"], self.settings.max_length, check_number)
        logits_UTC = self._network(self.units(windows.features))["logits"]
        window_N = windows.window_N
        column_N = tf.shape(logits_UTC)[1] - MARKS - tf.gather(windows.size_U, window_N)
        column_N += windows.place_N
        logits_NC = tf.gather_nd(logits_UTC, tf.stack([window_N, column_N], axis=1))
        words_BW = words.to_tensor("")
        is_word_BW1 = tf.cast(words_BW != "", tf.float32)[..., None]
        answers = self.answers(words.with_values(logits_NC).to_tensor(0.0), is_word_BW1)
        return {"words": words_BW, **answers}

    def from_tokens(self, inputs):
        """Computes the probabilities of each token; the first token of a word has its tag."""
        logits_BTC = self._network(with_sequence_axis(inputs))["logits"]
        labels = repeated(self._task.labels, tf.shape(logits_BTC)[0])
        return {"probabilities": tf.nn.softmax(logits_BTC), "labels": labels}

    def answers(self, logits_BWC, is_word_BW1):
        """Computes the answers for padded words."""
        probability_BWC = tf.nn.softmax(logits_BWC)
        tags_BW = tf.gather(tf.constant(self._task.labels), tf.argmax(logits_BWC, axis=-1))
        return {
            "tags": tf.where(is_word_BW1[..., 0] > 0, tags_BW, ""),
            "probabilities": probability_BWC * is_word_BW1,
            "labels": repeated(self._task.labels, tf.shape(logits_BWC)[0]),
        }
