"""Windows of a stretch of text: which tokens are the reuse part, A and B.

Window i of a lane is `reuse | A | SEP | B | SEP | CLS` with the reuse part at tokens
[i r, (i+1) r) and A right behind it. A and B hold S = T - r - 3 tokens together:

* A ends at a sentence end, drawn evenly from those less than S tokens behind A's start; where
  there is none, anywhere.
* With probability 1/2 B is what follows A (`is_next` 1), up to S tokens in all.
* Otherwise B is a span from elsewhere: a position is drawn, moved back to the start of its
  sentence and lengthened to the end of a sentence; then the longer of A and B loses tokens from
  its end until they fit.

This is `_split_a_and_b` of the XLNet release, except that a B that follows A always starts right
where A ends (there, a long A was trimmed and left a gap), and that B from elsewhere does not
overlap its own window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NUM_DRAWS = 3


class Windows(NamedTuple):
    """Windows in one stretch of text; all int64 [W], positions count from the stretch's start.

    Attributes:
      start: first token of the reuse part; A follows it.
      a_length: tokens of A.
      b_start: first token of B.
      b_length: tokens of B.
      is_next: 1 when B follows A.
      context_length: tokens of the same document before the window in its lane.
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
    """Chooses A and B of consecutive windows.

    Args:
      sentence_starts: int64, ascending positions where a sentence begins.
      document_starts: int64, ascending positions where a document begins.
      text_len: tokens of the stretch, at least W · reuse_len + span_len.
      context_length: tokens of the same document before position 0, if no document starts there.
      draws: float64 [W, 3] in [0, 1).
      reuse_len: tokens r by which windows advance.
      span_len: tokens S of A and B together.

    Returns:
      The windows, and the context length at position W · r, where the next stretch begins.
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
    is_next = draws[:, 1] < 0.5
    other_start, other_end = _elsewhere(
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


def window_draws(seed: int, split: int, lane: int, first: int, number: int) -> np.ndarray:
    """Random numbers of consecutive windows: a function of (seed, split, lane, window) alone.

    Args:
      seed: any integer.
      split: number of the split.
      lane: number of the lane.
      first: number of the first window in its lane.
      number: how many windows.

    Returns:
      float64 [number, `NUM_DRAWS`] in [0, 1).
    """
    # One step of Philox's counter gives four words: those of one window.
    key = np.array([seed % (1 << 64), split << 32 | lane], np.uint64)
    counter = np.array([first, 0, 0, 0], np.uint64)
    bits = np.random.Philox(key=key, counter=counter).random_raw(4 * number)
    return (bits.reshape(number, 4)[:, :NUM_DRAWS] >> np.uint64(11)) * 2.0**-53


def _elsewhere(
    sentence_starts: np.ndarray,
    text_len: int,
    start: np.ndarray,
    limit: np.ndarray,
    length: np.ndarray,
    draws: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Spans of at least `length` tokens outside [start, limit), of whole sentences if possible."""
    num_before = np.maximum(0, start - length + 1)
    num_behind = np.maximum(0, text_len - length - limit + 1)
    nowhere = num_before + num_behind == 0  # The stretch is too short: overlap the window.
    choice = _below(draws, np.where(nowhere, text_len - length + 1, num_before + num_behind))
    is_behind = ~nowhere & (choice >= num_before)
    position = np.where(is_behind, limit + choice - num_before, choice)
    lowest = np.where(is_behind, limit, 0)
    highest = np.where(is_behind | nowhere, text_len, start)
    sentence = np.searchsorted(sentence_starts, position, side="right") - 1
    begin = np.where(sentence >= 0, _at(sentence_starts, sentence), 0)
    following = np.searchsorted(sentence_starts, position + length)
    end = np.where(following < len(sentence_starts), _at(sentence_starts, following), text_len)
    return np.maximum(begin, lowest), np.minimum(end, highest)


def _trim(a_length: np.ndarray, b_length: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """Shortens the longer of two, one token at a time (B when they are equal), until they fit."""
    excess = a_length + b_length - total
    difference = a_length - b_length
    to_equal = np.minimum(excess, np.abs(difference))
    rest = excess - to_equal
    a_length = a_length - np.where(difference > 0, to_equal, 0) - rest // 2
    return a_length, total - a_length


def _since_last(starts: np.ndarray, positions: np.ndarray, before: int) -> np.ndarray:
    """Distance from the last start at or before each position; `before` counts before 0."""
    last = np.searchsorted(starts, positions, side="right") - 1
    return np.where(last >= 0, positions - _at(starts, last), positions + before)


def _at(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """`values[index]`; anything where the index is outside."""
    if not len(values):
        return np.zeros(len(index), np.int64)
    return values[np.clip(index, 0, len(values) - 1)]


def _below(draws: np.ndarray, limit: np.ndarray | int) -> np.ndarray:
    """int64, even over 0 … limit - 1."""
    return (draws * limit).astype(np.int64)
