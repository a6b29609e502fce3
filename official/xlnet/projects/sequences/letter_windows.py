"""Letters to windows: sequences that are tokenized as a whole, and the token of each letter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.tasks.token_classification.windows import WordWindows, windows_of
from official.xlnet.tokenization.graph.offsets import OffsetTokenizer
from official.xlnet.tokenization.graph.ragged import ranges
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import UNK_ID

_TEXT = 1 << 32  # Distance of the places of texts, to search all of them at once.


def letter_windows(
    ids: tf.RaggedTensor,
    starts: tf.RaggedTensor,
    letters_B: tf.Tensor,
    length: int,
    checked: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> WordWindows:
    """Packs texts that are tokenized as a whole; the N words of the result are their letters.

    The token of a letter is the last one that starts at or before it. Letters of one token have
    the same place.

    Args:
      ids: token ids of each text, ragged int32 [B, (number of tokens)].
      starts: the character at which each token starts.
      letters_B: number of letters of each text, int64 [B].
      length: maximum number of tokens of a window, SEP and CLS included.
      checked: checks the number of windows of each text, int32 [B], and returns it.
    """
    is_empty_B = tf.cast(ids.row_lengths() == 0, tf.int64)
    ids = _with_token(ids, is_empty_B, UNK_ID)
    starts = _with_token(starts, is_empty_B, 0)
    windows = windows_of(ids.from_tensor(ids.values[:, None]), ids.row_lengths(), length, checked)
    text_L, place_L = ranges(tf.cast(letters_B, tf.int32))
    places = tf.cast(ids.value_rowids(), tf.int64) * _TEXT + tf.cast(starts.values, tf.int64)
    wanted = tf.cast(text_L, tf.int64) * _TEXT + tf.cast(place_L, tf.int64)
    token_L = tf.searchsorted(places, wanted, side="right", out_type=tf.int64) - 1
    token_L = tf.maximum(token_L, tf.gather(ids.row_starts(), text_L))
    return dataclasses.replace(
        windows,
        window_N=tf.gather(windows.window_N, token_L),
        place_N=tf.gather(windows.place_N, token_L),
    )


def _with_token(values: tf.RaggedTensor, is_empty_B: tf.Tensor, value: int) -> tf.RaggedTensor:
    """Appends a value to the rows of texts without tokens."""
    added = tf.fill([tf.reduce_sum(is_empty_B)], value)
    return tf.concat([values, values.from_row_lengths(added, is_empty_B)], axis=1)


class LetterSplitter(tf.Module):
    """Splits texts into letters, and packs their tokens into windows.

    Args:
      tokenizer: the tokenizer.
    """

    def __init__(self, tokenizer: GraphTokenizer):
        super().__init__()
        self._offsets = OffsetTokenizer(tokenizer.plain, tokenizer)

    def __call__(
        self, text: tf.Tensor, length: int, checked: Callable[[tf.Tensor], tf.Tensor]
    ) -> tuple[tf.RaggedTensor, WordWindows]:
        """Returns the letters and their windows; for the arguments see `LabelUnit.splitter`."""
        letters = tf.strings.unicode_split(text, "UTF-8")
        ids, starts, _ = self._offsets(text)
        return letters, letter_windows(ids, starts, letters.row_lengths(), length, checked)
