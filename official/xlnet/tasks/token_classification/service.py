"""Services of classes and numbers of words or letters."""

from __future__ import annotations

import functools

import tensorflow as tf

from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    repeated,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import checked_windows
from official.xlnet.tasks.token_classification import TagConfig
from official.xlnet.tasks.token_classification.windows import MARKS, letter_windows, windows_of
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer


@register_service("token_classification")
class TagService(TaskService):
    """Splits texts at white space, or into letters, and tags these; see `TokenClassification`.

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
        if self._task.label_unit == "letter":
            self._offsets = OffsetTokenizer(tokenizer.plain, tokenizer)

    def from_texts(self, texts):
        words, windows = self._words(texts["text"])
        logits_UTC = self._network(self.units(windows.features))["logits"]
        window_N = windows.window_N
        column_N = tf.shape(logits_UTC)[1] - MARKS - tf.gather(windows.size_U, window_N)
        column_N += windows.place_N
        logits_NC = tf.gather_nd(logits_UTC, tf.stack([window_N, column_N], axis=1))
        words_BW = words.to_tensor("")
        is_word_BW1 = tf.cast(words_BW != "", tf.float32)[..., None]
        answers = self.answers(words.with_values(logits_NC).to_tensor(0.0), is_word_BW1)
        return {"words": words_BW, **answers}

    def _words(self, text):
        """The words or letters of texts, and their windows."""
        length, most = self.settings.max_length, self.settings.max_windows
        checked = functools.partial(checked_windows, "text", most=most)
        if self._task.label_unit == "letter":
            letters = tf.strings.unicode_split(text, "UTF-8")
            ids, starts, _ = self._offsets(text)
            return letters, letter_windows(ids, starts, letters.row_lengths(), length, checked)
        plain = tf.strings.regex_replace(text, self.tokenizer.white_space, " ")
        words = tf.strings.split(plain)
        pieces = self.tokenizer(words.values)
        return words, windows_of(pieces, words.row_lengths(), length, checked)

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
