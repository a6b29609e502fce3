"""Phrases that are masked as a single word (as ERNIE's phrase and entity masking)."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import require_data
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL, WORD_START
from official.xlnet.tokenization.tokenizer import Tokenizer
from official.xlnet.tokenization.unspaced_scripts import begins_unspaced

_FACTOR = 6364136223846793005  # Multiplier of the rolling hash (Knuth's MMIX), modulo 2**64.


def phrases_as_words(
    tokenizer: Tokenizer, phrases: Sequence[str]
) -> Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns a function that makes each phrase a single word; see `word_starts`.

    Args:
      tokenizer: the tokenizer.
      phrases: the phrases.

    Returns:
      A function from `token_ids` int [B, T], whether each token starts a word, bool [B, T], and
      `is_reversed` bool [B] to bool [B, T]: False inside of phrases.

    Raises:
      DataError: a phrase has a single word.
    """
    forms_of_length = collections.defaultdict(list)
    for phrase in phrases:
        for ids in _tokenizations(tokenizer, phrase):
            forms_of_length[len(ids)].append(ids)

    def without_insides(
        token_ids_BT: tf.Tensor, is_start_BT: tf.Tensor, is_reversed_B: tf.Tensor
    ) -> tf.Tensor:
        ids_BT = _turned(tf.cast(token_ids_BT, tf.int64), is_reversed_B)
        forward_BT = _turned(is_start_BT, is_reversed_B)
        is_inside_BT = tf.zeros_like(forward_BT)
        for length, forms in forms_of_length.items():
            keys_N = np.sort(_keys(np.array(forms, np.int64), length)[:, 0])
            is_inside_BT |= _inside(ids_BT, forward_BT, keys_N, length)
        return _turned(forward_BT & ~is_inside_BT, is_reversed_B)

    return without_insides


def _tokenizations(tokenizer: Tokenizer, phrase: str) -> list[list[int]]:
    """Possible tokenizations of a phrase in a text that have at least two tokens.

    SentencePiece puts a space before every text. In scripts with spaces, words have one anyway; in
    scripts without, a phrase may also follow other text directly.
    """
    ids = tokenizer.encode(phrase)
    if not begins_unspaced(tokenizer.clean(phrase)):
        require_data(
            tokenizer.is_word_start[ids].sum() >= 2,
            "data.phrases",
            "phrases of several words",
            f"{phrase!r}",
        )
        return [ids]
    without_space = tokenizer.id_to_piece(ids[0]).removeprefix(WORD_START)
    first = [tokenizer.piece_to_id(without_space)] if without_space else []
    ids_inside_text = [*first, *ids[1:]]
    return [variant for variant in (ids, ids_inside_text) if len(variant) > 1]


def _inside(
    ids_BT: tf.Tensor, is_start_BT: tf.Tensor, keys_N: np.ndarray, length: int
) -> tf.Tensor:
    """Bool [B, T]: whether a token is inside a phrase of `length` tokens, but not its first."""
    if ids_BT.shape[1] < length:
        return tf.zeros_like(is_start_BT)
    key_BS = _keys(ids_BT, length)
    index_BS = tf.searchsorted(keys_N, tf.reshape(key_BS, [-1]))
    nearest_key = tf.gather(keys_N, tf.minimum(index_BS, len(keys_N) - 1))
    is_phrase_BS = tf.reshape(nearest_key, tf.shape(key_BS)) == key_BS
    # The phrase has to end at a word boundary.
    ends_word_BT = is_start_BT | (ids_BT < NUM_SPECIAL)
    ends_word_BX = tf.pad(ends_word_BT, [[0, 0], [0, 1]], constant_values=True)
    is_phrase_BS &= ends_word_BX[:, length:]
    shifted = [
        tf.pad(is_phrase_BS, [[0, 0], [offset, length - 1 - offset]]) for offset in range(1, length)
    ]
    return tf.reduce_any(tf.stack(shifted), axis=0)


def _keys(ids_BT: Any, length: int) -> Any:
    """Rolling hash of every `length` ids in sequence, int64 [B, S], which overflows by design."""
    num_places = ids_BT.shape[1] - length + 1
    key_BS = ids_BT[:, :num_places]
    for offset in range(1, length):
        key_BS = key_BS * _FACTOR + ids_BT[:, offset : offset + num_places]
    return key_BS


def _turned(x_BT: tf.Tensor, is_reversed_B: tf.Tensor) -> tf.Tensor:
    """Flips the rows of reversed text along the token axis."""
    return tf.where(is_reversed_B[:, tf.newaxis], tf.reverse(x_BT, [1]), x_BT)
