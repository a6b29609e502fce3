"""Token classification service: tags of words, as in named entity recognition."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.serving.services.base import (
    TaskService,
    register_service,
    repeated,
    with_sequence_axis,
)
from official.xlnet.serving.services.input_checks import check
from official.xlnet.tokenization.graph.ragged import ranges
from official.xlnet.tokenization.special_tokens import UNK_ID

_MARKS = 2  # Number of special tokens of a window: SEP and CLS.


@register_service("token_classification")
class TagService(TaskService):
    """Splits texts at white space and tags the words; see `TokenClassification`.

    For the arguments see `TaskService`.

    Outputs:
      words, tags: string [B, W], padded on the right with "".
      probabilities: float32 [B, W, C], padded with 0.
      labels: string [B, C].
    """

    text_names = ("text",)
    per_token = ("logits",)

    def from_texts(self, texts):
        plain = tf.strings.regex_replace(texts["text"], self.tokenizer.white_space, " ")
        words = tf.strings.split(plain)
        pieces = self._pieces(words.values)
        window_N, last_window_B = self._windows(words, pieces)
        most = self.settings.max_windows
        message = [f"text: expected up to {most} windows, got "]
        message.append(tf.strings.as_string(tf.reduce_max(tf.concat([[0], last_window_B], 0)) + 1))
        window_N = check(tf.reduce_all(last_window_B < most), message, window_N)

        # Flat window indices over all texts; every text has at least one window.
        first_of_text_B = tf.cumsum(last_window_B + 1, exclusive=True)
        text_N = tf.cast(words.value_rowids(), tf.int32)
        unit_N = tf.gather(first_of_text_B, text_N) + window_N
        num_units = tf.reduce_sum(last_window_B + 1)
        size_N = tf.cast(pieces.row_lengths(), tf.int32)
        size_U = tf.math.unsorted_segment_sum(size_N, unit_N, num_units)
        ids = tf.RaggedTensor.from_row_lengths(pieces.values, size_U, validate=False)
        logits_UTC = self._network(with_sequence_axis(self.pack([ids])))["logits"]

        place_N = tf.cumsum(size_N, exclusive=True)
        place_N -= tf.gather(tf.cumsum(size_U, exclusive=True), unit_N)
        column_N = tf.shape(logits_UTC)[1] - _MARKS - tf.gather(size_U, unit_N) + place_N
        logits_NC = tf.gather_nd(logits_UTC, tf.stack([unit_N, column_N], axis=1))
        return self._tags(words, words.with_values(logits_NC))

    def from_tokens(self, inputs):
        """Computes the probabilities of each token; the first token of a word has its tag."""
        logits_BTC = self._network(with_sequence_axis(inputs))["logits"]
        labels = repeated(self._task.labels, tf.shape(logits_BTC)[0])
        return {"probabilities": tf.nn.softmax(logits_BTC), "labels": labels}

    def _pieces(self, words_N):
        """Returns the token ids of each word, truncated to a window; `<unk>` if there are none."""
        room = self.settings.max_length - _MARKS
        pieces = self.tokenizer(words_N)
        size_N = tf.minimum(tf.cast(pieces.row_lengths(), tf.int32), room)
        values = tf.concat([pieces.values, [UNK_ID]], axis=0)
        row, place = ranges(tf.maximum(size_N, 1))
        first = tf.gather(tf.cast(pieces.row_starts(), tf.int32), row)
        source = tf.where(tf.gather(size_N, row) > 0, first + place, tf.size(pieces.values))
        sizes = tf.cast(tf.maximum(size_N, 1), tf.int64)
        return tf.RaggedTensor.from_row_lengths(tf.gather(values, source), sizes, validate=False)

    def _windows(self, words, pieces):
        """Assigns words to windows greedily.

        Returns:
          The window index of each word, and the last window index of each text.
        """
        room = self.settings.max_length - _MARKS
        sizes = words.with_values(tf.cast(pieces.row_lengths(), tf.int32))
        sizes_WB = tf.transpose(sizes.to_tensor(0))
        zeros_B = tf.zeros([words.nrows()], tf.int32)

        def fill(state, size_B):
            used_B, window_B = state
            fits_B = used_B + size_B <= room
            return tf.where(fits_B, used_B, 0) + size_B, window_B + tf.cast(~fits_B, tf.int32)

        _, window_WB = tf.scan(fill, sizes_WB, (zeros_B, zeros_B))
        is_word_BW = tf.sequence_mask(words.row_lengths(), tf.shape(sizes_WB)[0])
        window_N = tf.boolean_mask(tf.transpose(window_WB), is_word_BW)
        window_WB = tf.concat([zeros_B[None], window_WB], axis=0)
        return window_N, window_WB[-1]

    def _tags(self, words, logits):
        probability_BWC = tf.nn.softmax(logits.to_tensor(0.0))
        best_BW = tf.argmax(probability_BWC, axis=-1)
        words_BW = words.to_tensor("")
        is_word_BW = words_BW != ""
        return {
            "words": words_BW,
            "tags": tf.where(is_word_BW, tf.gather(tf.constant(self._task.labels), best_BW), ""),
            "probabilities": probability_BWC * tf.cast(is_word_BW, tf.float32)[..., None],
            "labels": repeated(self._task.labels, tf.shape(words_BW)[0]),
        }
