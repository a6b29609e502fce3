"""Packing of tokenized texts into fixed-length model inputs.

    padding … padding | A | SEP | B | SEP | CLS

This is the input format of the published fine-tuned checkpoints: inputs are padded on the left, so
CLS is always the last token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.configs.validation import AT_LEAST_1, require_number
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.tokenization.special_tokens import (
    CLS_ID,
    PAD_ID,
    SEGMENT_CLS,
    SEGMENT_PAD,
    SEP_ID,
)


def segments_of(num_texts: int) -> list[int]:
    """Segment ids of the texts of an input and of its CLS; none is that of padding.

    Example:
      >>> [segments_of(n) for n in (1, 3, 5)]
      [[0, 2], [0, 1, 2, 3], [0, 1, 2, 3, 5, 6]]
    """
    ids = [*range(num_texts), max(SEGMENT_CLS, num_texts)]
    return [i + (i >= SEGMENT_PAD) for i in ids]


def truncated_lengths(lengths: Sequence[int], budget: int) -> list[int]:
    """Lengths after truncating texts to a total budget, longest first.

    Equivalent to removing one token at a time from the longest text, the last one in case of a tie
    (`_truncate_seq_pair` of the XLNet release).

    Args:
      lengths: length of each text in tokens.
      budget: maximum total length in tokens.

    Returns:
      The truncated lengths; at most `budget` in total.

    Example:
      >>> truncated_lengths([9, 2, 7], budget=11)
      [5, 2, 4]
    """
    if sum(lengths) <= budget:
        return list(lengths)
    low, high = (
        0,
        max(lengths),
    )  # Binary search: the largest common limit that fits is in [low, high).
    while high - low > 1:
        middle = (low + high) // 2
        if sum(min(length, middle) for length in lengths) <= budget:
            low = middle
        else:
            high = middle
    spare = budget - sum(min(length, low) for length in lengths)
    cut = []
    for length in lengths:
        extra = length > low and spare > 0
        cut.append(min(length, low) + extra)
        spare -= extra
    return cut


def truncated(text: Sequence[int], length: int, truncation_side: str = "right") -> Sequence[int]:
    """Truncates a sequence of tokens.

    Args:
      text: token ids.
      length: maximum length.
      truncation_side: side from which tokens are removed, `right` or `left`.

    Returns:
      The first (`right`) or last (`left`) `length` tokens.
    """
    return text[:length] if truncation_side == "right" else text[max(0, len(text) - length) :]


def pack_texts(
    texts: Sequence[Sequence[int]], length: int, truncation_side: str = "right"
) -> dict[str, np.ndarray]:
    """Packs the texts of one example into a fixed-length input.

    Args:
      texts: token ids of each text, in order: (A,), (A, B), …
      length: sequence length in tokens, T.
      truncation_side: side from which long texts are truncated, `right` or `left`.

    Returns:
      A dictionary with:
        token_ids: int32 [T], left padding followed by A SEP [B SEP …] CLS.
        segment_ids: int32 [T], those of `segments_of`, 0 for A and its SEP, 1 for B and its
          SEP, …; 4 for padding.
        is_padding: bool [T].

    Raises:
      DataError: `length` is too short to hold a token besides SEP and CLS.

    Example:
      >>> pack_texts([[21, 22, 23], [31]], length=8)  # 3 is CLS, 4 is SEP
      {'token_ids':   array([5, 21, 22, 23, 4, 31, 4, 3]),
       'segment_ids': array([4,  0,  0,  0, 0,  1, 1, 2]),
       'is_padding':  array([True, False, …])}
    """
    check_length(len(texts), length)
    cut = truncated_lengths([len(text) for text in texts], length - len(texts) - 1)
    token_ids = np.full(length, PAD_ID, np.int32)
    segment_ids = np.full(length, SEGMENT_PAD, np.int32)
    is_padding = np.ones(length, bool)
    position = length - sum(cut) - len(texts) - 1
    is_padding[position:] = False
    *segments, of_cls = segments_of(len(texts))
    for segment, text, kept in zip(segments, texts, cut, strict=True):
        token_ids[position : position + kept] = truncated(text, kept, truncation_side)
        token_ids[position + kept] = SEP_ID
        segment_ids[position : position + kept + 1] = segment
        position += kept + 1
    token_ids[position] = CLS_ID
    segment_ids[position] = of_cls
    return {"token_ids": token_ids, "segment_ids": segment_ids, "is_padding": is_padding}


def pack_columns(
    columns: Sequence[Sequence[Sequence[int]]], length: int, truncation_side: str = "right"
) -> dict[str, np.ndarray]:
    """Packs a batch of B examples given by column; see `pack_texts`.

    Args:
      columns: for each text column, the token ids of its B rows.
      length: sequence length in tokens, T.
      truncation_side: side from which long texts are truncated, `right` or `left`.

    Returns:
      The arrays of `pack_texts`, each [B, T].

    Raises:
      DataError: `length` is too short, or the columns have different numbers of rows.
    """
    check_length(len(columns), length)
    num_rows = [len(column) for column in columns]
    if len(set(num_rows)) > 1:
        raise DataError(f"text columns: expected equal numbers of rows, got {num_rows}")
    rows = [pack_texts(texts, length, truncation_side) for texts in zip(*columns, strict=True)]
    dtypes = {"token_ids": np.int32, "segment_ids": np.int32, "is_padding": bool}
    return {
        name: np.array([row[name] for row in rows], dtype).reshape(len(rows), length)
        for name, dtype in dtypes.items()
    }


def check_length(num_texts: int, length: int) -> None:
    """Checks that a sequence length can hold a token besides SEP and CLS.

    Args:
      num_texts: number of texts of an example.
      length: sequence length in tokens, T.

    Raises:
      DataError: the length is too short, or there is no text.
    """
    if num_texts < 1:
        raise DataError("inputs: expected at least one text, got none")
    if length < num_texts + 2:
        raise DataError(
            f"input length: expected at least {num_texts + 2} for {num_texts} text(s) with their "
            f"SEP and CLS, got {length}"
        )


def input_length(
    columns: Sequence[Sequence[Sequence[int]]], max_length: int | None, padding: str
) -> int:
    """Number of tokens T that examples, given by column, are padded to."""
    if max_length is not None:
        require_number("max_length", max_length, AT_LEAST_1)
    if padding == "max_length":
        if max_length is None:
            raise ConfigError("max_length: expected a number with padding='max_length', got None")
        return max_length
    if padding != "longest":
        raise ConfigError(f"padding: expected longest or max_length, got {padding!r}")
    num_special = len(columns) + 1
    longest = max((sum(map(len, row)) for row in zip(*columns, strict=False)), default=1)
    longest = max(longest, 1) + num_special
    return longest if max_length is None else min(longest, max_length)


def cut_columns(
    columns: Sequence[Sequence[Sequence[int]]], length: int, truncation: str
) -> Sequence[Sequence[Sequence[int]]]:
    """Columns in which only the text that `truncation` names is truncated, where it names one."""
    if truncation == "longest_first":
        return columns
    names = ["only_first", "only_second"][: len(columns)]
    if truncation not in names:
        raise ConfigError(
            f"truncation: expected longest_first or {' or '.join(names)}, got {truncation!r}"
        )
    cut = names.index(truncation)
    result = [list(column) for column in columns]
    for row, texts in enumerate(zip(*columns, strict=False)):
        others = sum(len(text) for i, text in enumerate(texts) if i != cut)
        room = length - len(columns) - 1 - others
        if room < 0:
            raise DataError(
                f"input {row}: expected at most {length} tokens, got {others} in the text that "
                f"truncation={truncation!r} keeps whole, and {len(columns) + 1} special tokens"
            )
        result[cut][row] = texts[cut][:room]
    return result
