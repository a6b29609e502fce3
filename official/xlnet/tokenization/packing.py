"""Texts to fixed-length model inputs, as the published checkpoints were fine-tuned with.

    padding … padding | A | SEP | B | SEP | CLS

Inputs are padded on the left, so CLS is always the last token.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from official.xlnet.errors import DataError
from official.xlnet.tokenization.special_tokens import CLS_ID, SEGMENT_CLS, SEGMENT_PAD, SEP_ID

# Published checkpoints pad with id 0 (`<unk>`), not `<pad>`; `is_padding` hides it.
PADDING_TOKEN_ID = 0


def cls_segment(num_texts: int) -> int:
    """Segment id of CLS: 2 for one or two texts, as published; else the first one unused."""
    return max(SEGMENT_CLS, num_texts)


def truncated_lengths(lengths: Sequence[int], budget: int) -> list[int]:
    """Cuts texts until they hold `budget` tokens in all, always the longest one by one token.

    Where several are longest the last of them is cut (the release's `_truncate_seq_pair`).

    Args:
      lengths: tokens of every text.
      budget: tokens they may hold together.

    Example:
      >>> truncated_lengths([9, 2, 7], budget=11)
      [5, 2, 4]
    """
    if sum(lengths) <= budget:
        return list(lengths)
    low, high = 0, max(lengths)  # The largest common ceiling that fits is in [low, high).
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
    """The first `length` tokens of a text, or the last ones where the left side is cut."""
    return text[:length] if truncation_side == "right" else text[max(0, len(text) - length) :]


def pack_texts(
    texts: Sequence[Sequence[int]], length: int, truncation_side: str = "right"
) -> dict[str, np.ndarray]:
    """Packs one example.

    Args:
      texts: token ids of the example's texts, in order: (A,), (A, B), …
      length: number of tokens T to make.
      truncation_side: the end that texts lose which are too long, `right` or `left`.

    Returns:
      token_ids: int32 [T], A SEP [B SEP …] CLS with padding before it.
      segment_ids: int32 [T], 0 for A and its SEP, 1 for B and its SEP, …; `cls_segment` for CLS;
        4 for padding.
      is_padding: bool [T].

    Raises:
      DataError: there is no room for a token beside the special ones.

    Example:
      >>> pack_texts([[21, 22, 23], [31]], length=8)  # 3 is CLS, 4 is SEP
      {'token_ids':   array([0, 21, 22, 23, 4, 31, 4, 3]),
       'segment_ids': array([4,  0,  0,  0, 0,  1, 1, 2]),
       'is_padding':  array([True, False, …])}
    """
    check_length(len(texts), length)
    cut = truncated_lengths([len(text) for text in texts], length - len(texts) - 1)
    token_ids = np.full(length, PADDING_TOKEN_ID, np.int32)
    segment_ids = np.full(length, SEGMENT_PAD, np.int32)
    is_padding = np.ones(length, bool)
    position = length - sum(cut) - len(texts) - 1
    is_padding[position:] = False
    for segment, (text, kept) in enumerate(zip(texts, cut, strict=True)):
        token_ids[position : position + kept] = truncated(text, kept, truncation_side)
        token_ids[position + kept] = SEP_ID
        segment_ids[position : position + kept + 1] = segment
        position += kept + 1
    token_ids[position] = CLS_ID
    segment_ids[position] = cls_segment(len(texts))
    return {"token_ids": token_ids, "segment_ids": segment_ids, "is_padding": is_padding}


def pack_columns(
    columns: Sequence[Sequence[Sequence[int]]], length: int, truncation_side: str = "right"
) -> dict[str, np.ndarray]:
    """Packs B examples given by column.

    Args:
      columns: for every text column, the token ids of its B rows.
      length: number of tokens T of every row.
      truncation_side: see `pack_texts`.

    Returns:
      The arrays of `pack_texts`, each [B, T].

    Raises:
      DataError: see `pack_texts`; or the columns have different numbers of rows.
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
    """Raises `DataError` where T leaves no room for a token beside the special ones."""
    if num_texts < 1:
        raise DataError("inputs: expected at least one text, got none")
    if length < num_texts + 2:
        raise DataError(
            f"input length: expected at least {num_texts + 2} for {num_texts} text(s) with their "
            f"SEP and CLS, got {length}"
        )
