"""Selection of the reuse part and the segments A and B of each window.

Window i of a lane is `reuse | A | SEP | B | SEP | CLS`, where the reuse part is tokens
[i r, (i+1) r) of the lane and A directly follows it. A and B have S = T - r - 3 tokens in total:

* A ends at a sentence end, sampled uniformly from those less than S tokens after the start of A;
  if there is none, at a random position.
* With probability 1/2, B is the text that follows A (`is_next` 1), up to S tokens in total.
* Otherwise, B is a random segment: a random position is moved back to the start of its sentence
  and extended to a sentence end; then the longer of A and B is truncated at its end until both
  fit.

This follows `_split_a_and_b` of the XLNet release, except that

* a B that follows A always starts directly after A; in the release, truncating a long A leaves a
  gap;
* a random B does not overlap its own window, and is of the same chunk of text, not of the whole
  file;
* sentences end with `. ! ?` and their like too, not only with lines (`token_files`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NUM_DRAWS = 3  # Random numbers per window: end of A, is_next, position of a random B.
_NEXT_PROBABILITY = 0.5
_WORDS_PER_COUNTER = 4  # 64-bit words per counter value of Philox.
_MANTISSA_BITS = 53  # Precision of float64.


class Windows(NamedTuple):
    """Windows of a chunk of text; all int64 [W], positions are relative to the chunk.

    Attributes:
      start: position of the reuse part; A follows it.
      a_length: length of A in tokens.
      b_start: position of B.
      b_length: length of B in tokens.
      is_next: 1 if B follows A, else 0.
      context_length: number of preceding tokens of the same document in the lane.
    """

    start: np.ndarray
    a_length: np.ndarray
    b_start: np.ndarray
    b_length: np.ndarray
    is_next: np.ndarray
    context_length: np.ndarray


def choose_windows(
    sentence_starts: np.ndarray,
    document_starts: np.ndarray,
    text_len: int,
    context_length: int,
    draws: np.ndarray,
    reuse_len: int,
    span_len: int,
) -> tuple[Windows, int]:
    """Selects A and B of consecutive windows in a chunk of text.

    Args:
      sentence_starts: int64, positions where a sentence starts, in ascending order.
      document_starts: int64, positions where a document starts, in ascending order.
      text_len: length of the chunk in tokens, at least W · reuse_len + span_len.
      context_length: number of tokens before position 0 that belong to the same document.
      draws: float64 [W, `NUM_DRAWS`] in [0, 1), random numbers; see `window_draws`.
      reuse_len: stride between windows in tokens, r.
      span_len: total length of A and B in tokens, S.

    Returns:
      windows: the windows.
      context_length: the context length at position W · r, where the next chunk starts.
    """
    num_windows = len(draws)
    start = np.arange(num_windows + 1) * reuse_len
    context = _since_last(document_starts, start, context_length)
    start = start[:-1]
    a_start = start + reuse_len
    limit = a_start + span_len

    first = np.searchsorted(sentence_starts, a_start + 1)
    num_ends = np.searchsorted(sentence_starts, limit) - first
    a_end = np.where(
        num_ends > 0,
        _at(sentence_starts, first + _below(draws[:, 0], num_ends)),
        a_start + 1 + _below(draws[:, 0], span_len - 1),
    )
    is_next = draws[:, 1] < _NEXT_PROBABILITY
    other_start, other_end = _random_spans(
        sentence_starts, text_len, start, limit, limit - a_end, draws[:, 2]
    )
    a_length, other_length = _trim(a_end - a_start, other_end - other_start, span_len)
    windows = Windows(
        start=start,
        a_length=np.where(is_next, a_end - a_start, a_length),
        b_start=np.where(is_next, a_end, other_start),
        b_length=np.where(is_next, limit - a_end, other_length),
        is_next=is_next.astype(np.int64),
        context_length=context[:-1],
    )
    return windows, int(context[-1])


def window_draws(seed: int, split: int, lane: int, first: int, num_windows: int) -> np.ndarray:
    """Generates the random numbers of consecutive windows with a counter-based generator.

    The numbers of a window depend only on (seed, split, lane, index of the window).

    Args:
      seed: random seed, any integer.
      split: code of the split.
      lane: index of the lane.
      first: index of the first window in its lane.
      num_windows: number of windows.

    Returns:
      float64 [num_windows, `NUM_DRAWS`], uniform in [0, 1).
    """
    # One counter value of Philox generates the words of one window.
    key = np.array([seed % (1 << 64), split << 32 | lane], np.uint64)
    counter = np.array([first, 0, 0, 0], np.uint64)
    bits = np.random.Philox(key=key, counter=counter).random_raw(_WORDS_PER_COUNTER * num_windows)
    words = bits.reshape(num_windows, _WORDS_PER_COUNTER)[:, :NUM_DRAWS]
    return (words >> np.uint64(64 - _MANTISSA_BITS)) * 2.0**-_MANTISSA_BITS


def _random_spans(
    sentence_starts: np.ndarray,
    text_len: int,
    start: np.ndarray,
    limit: np.ndarray,
    length: np.ndarray,
    draws: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Random spans of at least `length` tokens outside [start, limit), aligned to sentences."""
    num_before = np.maximum(0, start - length + 1)
    num_after = np.maximum(0, text_len - length - limit + 1)
    must_overlap = num_before + num_after == 0  # The chunk is too short.
    choice = _below(draws, np.where(must_overlap, text_len - length + 1, num_before + num_after))
    is_after = ~must_overlap & (choice >= num_before)
    position = np.where(is_after, limit + choice - num_before, choice)
    lowest = np.where(is_after, limit, 0)
    highest = np.where(is_after | must_overlap, text_len, start)
    sentence = np.searchsorted(sentence_starts, position, side="right") - 1
    begin = np.where(sentence >= 0, _at(sentence_starts, sentence), 0)
    following = np.searchsorted(sentence_starts, position + length)
    end = np.where(following < len(sentence_starts), _at(sentence_starts, following), text_len)
    return np.maximum(begin, lowest), np.minimum(end, highest)


def _trim(a_length: np.ndarray, b_length: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Truncates the longer of A and B (B if equal), token by token, to a total length."""
    excess = a_length + b_length - total
    difference = a_length - b_length
    to_equal = np.minimum(excess, np.abs(difference))
    rest = excess - to_equal
    a_length = a_length - np.where(difference > 0, to_equal, 0) - rest // 2
    return a_length, total - a_length


def _since_last(starts: np.ndarray, positions: np.ndarray, before: int) -> np.ndarray:
    """Distance to the last start at or before each position; `before` is the distance at 0."""
    last = np.searchsorted(starts, positions, side="right") - 1
    return np.where(last >= 0, positions - _at(starts, last), positions + before)


def _at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`values[index]`; unspecified values where the index is out of range."""
    if not len(values):
        return np.zeros(len(index), np.int64)
    return values[np.clip(index, 0, len(values) - 1)]


def _below(draws: np.ndarray, limit: np.ndarray | int) -> np.ndarray:
    """Maps uniform numbers in [0, 1) to integers in [0, limit), int64."""
    return (draws * limit).astype(np.int64)
