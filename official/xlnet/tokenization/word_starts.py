"""Word boundaries for whole-word masking."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from official.xlnet.tokenization.tokenizer import Tokenizer

WordStarts = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def word_starts(tokenizer: Tokenizer, phrases: Sequence[str] = ()) -> WordStarts:
    """Returns a function that finds the tokens that start a word, treating phrases as one word.

    In scripts without spaces between words, a piece is a word; see `unspaced_scripts`.

    Args:
      tokenizer: the tokenizer.
      phrases: phrases of at least two words. Occurrences have to match whole words. In scripts
        without spaces, they have to be split into the same pieces as the phrase alone.

    Returns:
      A function from `token_ids` int [B, T] and `is_reversed` bool [B] to bool [B, T]: whether a
      token starts a word of the text in its original direction.

    Raises:
      DataError: a phrase has a single word.

    Example, with the phrase `New York`:
      in  New  York  .      1 1 0 1
    """
    is_word_start_V = tf.constant(tokenizer.is_word_start)
    is_start_after_unspaced_V = tf.constant(tokenizer.is_start_after_unspaced)
    ends_unspaced_V = tf.constant(tokenizer.ends_unspaced)
    merge: Callable | None = None
    if phrases:
        from official.xlnet.tokenization.phrases import phrases_as_words

        merge = phrases_as_words(tokenizer, phrases)

    def starts(token_ids_BT: tf.Tensor, is_reversed_B: tf.Tensor) -> tf.Tensor:
        is_start_BT = tf.gather(is_word_start_V, token_ids_BT)
        is_after_BT = _previous(tf.gather(ends_unspaced_V, token_ids_BT), is_reversed_B)
        is_start_BT |= is_after_BT & tf.gather(is_start_after_unspaced_V, token_ids_BT)
        if merge is None:
            return is_start_BT
        return merge(token_ids_BT, is_start_BT, is_reversed_B)

    return starts


def _previous(x_BT: tf.Tensor, is_reversed_B: tf.Tensor) -> tf.Tensor:
    """The value of the token before each one in the original text; False at the edge."""
    before_BT = tf.pad(x_BT[:, :-1], [[0, 0], [1, 0]])
    after_BT = tf.pad(x_BT[:, 1:], [[0, 0], [0, 1]])
    return tf.where(is_reversed_B[:, tf.newaxis], after_BT, before_BT)
