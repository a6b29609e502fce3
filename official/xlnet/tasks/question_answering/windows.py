"""Paragraphs to overlapping windows, each with the whole question (sliding windows, "doc stride").

window | SEP | question | SEP | CLS
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.tokenization.graph.packing import Features, pack
from official.xlnet.tokenization.graph.ragged import ranges, slices

_LENGTH_BONUS = 0.01  # Weight of the window length in `_most_context`, as in the original code.


@dataclasses.dataclass
class Windows:
    """The W windows of B paragraphs.

    Attributes:
      text_W: the paragraph of a window.
      start_W: its first token in the paragraph.
      length_W: its number of tokens of the paragraph.
      tail_W: its number of further tokens: the question, two SEP and CLS.
    """

    text_W: tf.Tensor
    start_W: tf.Tensor
    length_W: tf.Tensor
    tail_W: tf.Tensor

    @classmethod
    def of(
        cls,
        question: tf.RaggedTensor,
        ids: tf.RaggedTensor,
        length: int,
        stride: int,
        checked: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
    ) -> Windows:
        """Splits paragraphs into windows.

        Args:
          question: token ids of the questions, ragged int32 [B, (number of tokens)].
          ids: token ids of the paragraphs, ragged int32 [B, (number of tokens)].
          length: maximum number of tokens of an input, T, with room for a question and a token.
          stride: tokens between the starts of two windows; one longer than a window is its length.
          checked: checks the number of windows of each paragraph, int32 [B], and returns it.
        """
        query_B = tf.cast(question.row_lengths(), tf.int32)
        size_B = tf.cast(ids.row_lengths(), tf.int32)
        room_B = length - query_B - 3
        step_B = tf.minimum(stride, room_B)
        number_B = 1 + (tf.maximum(size_B - room_B, 0) + step_B - 1) // step_B
        text_W, place_W = ranges(checked(number_B))
        start_W = place_W * tf.gather(step_B, text_W)
        length_W = tf.minimum(tf.gather(room_B, text_W), tf.gather(size_B, text_W) - start_W)
        return cls(text_W, start_W, length_W, tf.gather(query_B, text_W) + 3)

    def features(self, question: tf.RaggedTensor, ids: tf.RaggedTensor, length: int) -> Features:
        """Packs the windows; see `of` for the arguments.

        Returns:
          `token_ids` and `segment_ids`, ragged int32 [W, (number of tokens)], and ragged bool:
          `can_answer`, the tokens of the paragraph, and `may_start`, the ones that have their
          maximum context in this window.
        """
        window = slices(ids, self.text_W, self.start_W, self.length_W)
        num_others = tf.reduce_sum(self.tail_W)
        tail = tf.RaggedTensor.from_row_lengths(
            tf.zeros([num_others], tf.bool), tf.cast(self.tail_W, tf.int64), validate=False
        )
        starts = self._most_context(tf.cast(ids.row_starts(), tf.int32))
        return pack([window, tf.gather(question, self.text_W)], length) | {
            name: tf.concat([window.with_values(flags), tail], axis=1)
            for name, flags in (("can_answer", tf.ones_like(starts)), ("may_start", starts))
        }

    def _most_context(self, first_B: tf.Tensor) -> tf.Tensor:
        """Whether each token has maximum context in its window ("max context" of BERT's SQuAD).

            score = min(tokens to the left, tokens to the right) + 0.01 · window length

        Ties go to the earlier window.

        Args:
          first_B: place of the first token of each paragraph among all tokens.

        Returns:
          bool [sum of window lengths].
        """
        window, place = ranges(self.length_W)
        size = tf.gather(self.length_W, window)
        token = tf.gather(tf.gather(first_B, self.text_W) + self.start_W, window) + place
        context = tf.cast(tf.minimum(place, size - 1 - place), tf.float64)
        score = context + _LENGTH_BONUS * tf.cast(size, tf.float64)
        num_tokens = tf.reduce_max(tf.concat([[-1], token], axis=0)) + 1
        is_best = score == tf.gather(tf.math.unsorted_segment_max(score, token, num_tokens), token)
        candidate = tf.where(is_best, window, tf.int32.max)
        winner = tf.math.unsorted_segment_min(candidate, token, num_tokens)
        return window == tf.gather(winner, token)
