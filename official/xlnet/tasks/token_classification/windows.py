"""Words to windows: sequences of whole words that are filled from left to right."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from official.xlnet.tokenization.graph.packing import Features, pack
from official.xlnet.tokenization.graph.ragged import ranges
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.special_tokens import UNK_ID

MARKS = 2  # Number of special tokens of a window: SEP and CLS.


@dataclasses.dataclass
class WordWindows:
    """The windows of B texts of N words in all.

    Attributes:
      features: `token_ids` and `segment_ids` of the U windows, ragged int32 [U, (tokens)].
      window_N: the window that holds a word.
      place_N: the first token of a word, counted from the start of its window.
      size_U: number of tokens of a window, without SEP and CLS.
      number_B: number of windows of a text, at least one.
    """

    features: Features
    window_N: tf.Tensor
    place_N: tf.Tensor
    size_U: tf.Tensor
    number_B: tf.Tensor


def windows_of(
    pieces: tf.RaggedTensor,
    words_B: tf.Tensor,
    length: int,
    checked: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> WordWindows:
    """Packs words into windows of up to `length` tokens, SEP and CLS included.

    Args:
      pieces: token ids of each word, ragged int32 [N, (number of tokens)].
      words_B: number of words of each text, int64 [B].
      length: maximum number of tokens of a window, T.
      checked: checks the number of windows of each text, int32 [B], and returns it.
    """
    pieces = _whole(pieces, length - MARKS)
    size_N = tf.cast(pieces.row_lengths(), tf.int32)
    sizes = tf.RaggedTensor.from_row_lengths(size_N, words_B, validate=False)
    number_WB = _filled(tf.transpose(sizes.to_tensor(0)), length - MARKS)
    is_word_BW = tf.sequence_mask(words_B, tf.shape(number_WB)[0] - 1)
    number_B = checked(number_WB[-1] + 1)
    first_of_text_B = tf.cumsum(number_B, exclusive=True)
    text_N = tf.cast(sizes.value_rowids(), tf.int32)
    window_N = tf.boolean_mask(tf.transpose(number_WB[1:]), is_word_BW)
    window_N += tf.gather(first_of_text_B, text_N)
    size_U = tf.math.unsorted_segment_sum(size_N, window_N, tf.reduce_sum(number_B))
    place_N = tf.cumsum(size_N, exclusive=True)
    place_N -= tf.gather(tf.cumsum(size_U, exclusive=True), window_N)
    ids = tf.RaggedTensor.from_row_lengths(pieces.values, size_U, validate=False)
    return WordWindows(pack([ids], length), window_N, place_N, size_U, number_B)


class WordSplitter(tf.Module):
    """Splits texts at white space, and packs their words into windows.

    Args:
      tokenizer: the tokenizer.
    """

    def __init__(self, tokenizer: GraphTokenizer):
        super().__init__()
        self._tokenizer = tokenizer

    def __call__(
        self, text: tf.Tensor, length: int, checked: Callable[[tf.Tensor], tf.Tensor]
    ) -> tuple[tf.RaggedTensor, WordWindows]:
        """Returns the words and their windows; for the arguments see `LabelUnit.splitter`."""
        plain = tf.strings.regex_replace(text, self._tokenizer.white_space, " ")
        words = tf.strings.split(plain)
        pieces = self._tokenizer(words.values)
        return words, windows_of(pieces, words.row_lengths(), length, checked)


def _whole(pieces: tf.RaggedTensor, room: int) -> tf.RaggedTensor:
    """Truncates the tokens of each word to a window; `<unk>` for a word that has none."""
    size_N = tf.minimum(tf.cast(pieces.row_lengths(), tf.int32), room)
    values = tf.concat([pieces.values, [UNK_ID]], axis=0)
    row, place = ranges(tf.maximum(size_N, 1))
    first = tf.gather(tf.cast(pieces.row_starts(), tf.int32), row)
    source = tf.where(tf.gather(size_N, row) > 0, first + place, tf.size(pieces.values))
    sizes = tf.cast(tf.maximum(size_N, 1), tf.int64)
    return tf.RaggedTensor.from_row_lengths(tf.gather(values, source), sizes, validate=False)


@tf.function(
    autograph=False,
    input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int32)],
)
def _filled(sizes_WB: tf.Tensor, room: tf.Tensor) -> tf.Tensor:
    """Assigns words to windows of `room` tokens, in order.

    Returns:
      The number of the window of each word in its text, after a row of zeros, int32 [1 + W, B].
    """
    zeros_B = tf.zeros([tf.shape(sizes_WB)[1]], tf.int32)

    def fill(state, size_B):
        used_B, window_B = state
        fits_B = used_B + size_B <= room
        return tf.where(fits_B, used_B, 0) + size_B, window_B + tf.cast(~fits_B, tf.int32)

    # A word without tokens first, as a scan needs a row.
    return tf.scan(fill, tf.pad(sizes_WB, [[1, 0], [0, 0]]), (zeros_B, zeros_B))[1]
