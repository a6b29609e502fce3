"""Packing of tokenized texts into model inputs.

    padding … padding | A | SEP | B | SEP | CLS

This is the input format of the published fine-tuned checkpoints: inputs are padded on the left, so
CLS is always the last token. Fine-tuning, prediction, embedding and exported models all call these
functions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import AT_LEAST_1, require_number, require_one_of
from official.xlnet.errors import ConfigError, require_data
from official.xlnet.tokenization.graph.ragged import left_padded, ragged, slices
from official.xlnet.tokenization.special_tokens import (
    CLS_ID,
    PAD_ID,
    SEGMENT_CLS,
    SEGMENT_PAD,
    SEP_ID,
)

# Ragged tensors [N, (number of tokens)], by the name of the input.
Features = dict[str, tf.RaggedTensor]
# Padding value of each input with a token axis; 0 for any other.
PADDING = {"token_ids": PAD_ID, "segment_ids": SEGMENT_PAD, "tags": -1}


def segments_of(num_texts: int) -> list[int]:
    """Segment ids of the texts of an input and of its CLS; the id of padding is skipped.

    Example:
      >>> [segments_of(n) for n in (1, 3, 5)]
      [[0, 2], [0, 1, 2, 3], [0, 1, 2, 3, 5, 6]]
    """
    ids = [*range(num_texts), max(SEGMENT_CLS, num_texts)]
    return [i + (i >= SEGMENT_PAD) for i in ids]


def pack(
    columns: Sequence[tf.RaggedTensor], length: int | tf.Tensor, truncation_side: str = "right"
) -> Features:
    """Packs the texts of each example into one sequence, the longest texts truncated to fit.

    Args:
      columns: for each text of an example, token ids int32 [N, (number of tokens)].
      length: maximum number of tokens of a sequence, T; an int or an int32 scalar tensor.
      truncation_side: side from which long texts are truncated, `right` or `left`.

    Returns:
      `token_ids`, A SEP [B SEP …] CLS, and `segment_ids`, see `segments_of`: 0 for A and its
      SEP, 1 for B and its SEP, …; ragged int32 [N, (number of tokens)].

    Raises:
      DataError: `length` is an int that is too short to hold a token besides SEP and CLS.
    """
    if isinstance(length, int):
        check_length(len(columns), length)
    rows = columns[0].nrows(out_type=tf.int32)
    lengths = tf.stack([tf.cast(c.row_lengths(), tf.int32) for c in columns], axis=1)
    cut = truncated_lengths(lengths, length - len(columns) - 1)
    parts = []
    for text, column in enumerate(columns):
        first = (
            lengths[:, text] - cut[:, text]
            if truncation_side == "left"
            else tf.zeros_like(cut[:, text])
        )
        parts += [slices(column, tf.range(rows), first, cut[:, text]), tf.fill([rows, 1], SEP_ID)]
    token_ids = tf.concat([*parts, tf.fill([rows, 1], CLS_ID)], axis=1)
    segments = tf.tile(segments_of(len(columns)), [rows])
    repeats = tf.pad(cut + 1, [[0, 0], [0, 1]], constant_values=1)  # SEP and CLS included.
    segment_ids = token_ids.with_values(tf.repeat(segments, tf.reshape(repeats, [-1])))
    return {"token_ids": token_ids, "segment_ids": segment_ids}


def truncated_lengths(lengths: tf.Tensor, budget: int | tf.Tensor) -> tf.Tensor:
    """Lengths after truncating texts to a total budget, longest first.

    Equivalent to removing one token at a time from the longest text, the last one in case of a tie
    (`_truncate_seq_pair` of the XLNet release).

    Args:
      lengths: length of each text in tokens, int32 [N, number of texts].
      budget: maximum total length in tokens.

    Returns:
      The truncated lengths, int32 [N, number of texts]; at most `budget` in total.

    Example:
      >>> truncated_lengths(tf.constant([[9, 2, 7]]), budget=11).numpy().tolist()
      [[5, 2, 4]]
    """
    ceilings = tf.range(budget + 1)
    totals = tf.reduce_sum(tf.minimum(lengths[:, :, tf.newaxis], ceilings), axis=1)
    ceiling = tf.reduce_sum(tf.cast(totals <= budget, tf.int32), axis=1, keepdims=True) - 1
    is_longer = lengths > ceiling
    spare = budget - tf.reduce_sum(tf.minimum(lengths, ceiling), axis=1, keepdims=True)
    extra = is_longer & (tf.cumsum(tf.cast(is_longer, tf.int32), axis=1) <= spare)
    return tf.minimum(lengths, ceiling) + tf.cast(extra, tf.int32)


def needed_lengths(columns: Sequence[tf.RaggedTensor]) -> tf.Tensor:
    """Number of tokens of each example without truncation, SEP and CLS included, int32 [N]."""
    lengths = tf.add_n([column.row_lengths() for column in columns])
    return tf.cast(lengths, tf.int32) + len(columns) + 1


def only(features: Features, is_kept: tf.Tensor) -> Features:
    """Empties the rows of features where `is_kept`, bool [N], is false."""
    rows = tf.range(tf.size(is_kept))
    return {
        name: slices(
            x,
            rows,
            tf.zeros_like(rows),
            tf.where(is_kept, tf.cast(x.row_lengths(), tf.int32), 0),
        )
        for name, x in features.items()
    }


def padded(features: Features, length: int | tf.Tensor) -> dict[str, tf.Tensor]:
    """Pads sequences on the left to one length, T, and adds `is_padding` bool [N, T]."""
    arrays = {name: left_padded(x, length, PADDING.get(name, 0)) for name, x in features.items()}
    num_tokens = tf.cast(features["token_ids"].row_lengths(), tf.int32)
    return arrays | {"is_padding": tf.range(length) < (length - num_tokens)[:, tf.newaxis]}


def pack_columns(
    columns: Sequence[Sequence[Sequence[int]]], length: int, truncation_side: str = "right"
) -> dict[str, np.ndarray]:
    """Packs a batch of B examples into arrays of one length; see `pack`.

    Args:
      columns: for each text column, the token ids of its B rows.
      length: sequence length in tokens, T.
      truncation_side: side from which long texts are truncated, `right` or `left`.

    Returns:
      `token_ids` and `segment_ids`, int32 [B, T], 5 and 4 at padding, and `is_padding`, bool
      [B, T].

    Raises:
      DataError: `length` is too short, or the columns have different numbers of rows.

    Example:
      >>> pack_columns([[[21, 22, 23]], [[31]]], length=8)  # 3 is CLS, 4 is SEP
      {'token_ids':   array([[5, 21, 22, 23, 4, 31, 4, 3]]),
       'segment_ids': array([[4,  0,  0,  0, 0,  1, 1, 2]]),
       'is_padding':  array([[True, False, …]])}
    """
    num_rows = [len(column) for column in columns]
    require_data(len(set(num_rows)) <= 1, "text columns", "equal numbers of rows", num_rows)
    with tf.device("cpu"):
        features = pack([ragged(column) for column in columns], length, truncation_side)
        return {name: x.numpy() for name, x in padded(features, length).items()}


def check_length(num_texts: int, length: int) -> None:
    """Checks that a sequence length can hold a token besides SEP and CLS.

    Args:
      num_texts: number of texts of an example.
      length: sequence length in tokens, T.

    Raises:
      DataError: the length is too short, or there is no text.
    """
    require_data(num_texts >= 1, "inputs", "at least one text", "none")
    require_data(
        length >= num_texts + 2,
        "input length",
        f"at least {num_texts + 2} for {num_texts} text(s) with their SEP and CLS",
        length,
    )


def input_length(
    columns: Sequence[Sequence[Sequence[int]]], max_length: int | None, padding: str
) -> int:
    """Number of tokens T that examples, given by column, are padded to."""
    if max_length is not None:
        require_number("max_length", max_length, AT_LEAST_1)
    require_one_of("padding", padding, ("longest", "max_length"))
    if padding == "max_length":
        if max_length is None:
            raise ConfigError("max_length: expected a number with padding='max_length', got None")
        return max_length
    sizes = [sum(map(len, texts)) for texts in zip(*columns, strict=False)]
    longest = max([1, *sizes]) + len(columns) + 1
    return longest if max_length is None else min(longest, max_length)


def cut_columns(
    columns: Sequence[Sequence[Sequence[int]]], length: int, truncation: str
) -> Sequence[Sequence[Sequence[int]]]:
    """Columns in which only the text that `truncation` names is truncated, where it names one."""
    names = ("only_first", "only_second")[: len(columns)]
    require_one_of("truncation", truncation, ("longest_first", *names))
    if truncation == "longest_first":
        return columns
    cut = names.index(truncation)
    result = [list(column) for column in columns]
    for row, texts in enumerate(zip(*columns, strict=False)):
        others = sum(len(text) for i, text in enumerate(texts) if i != cut)
        room = length - len(columns) - 1 - others
        require_data(
            room >= 0,
            f"input {row}",
            f"at most {length} tokens",
            f"{others} in the text that truncation={truncation!r} keeps whole, and "
            f"{len(columns) + 1} special tokens",
        )
        result[cut][row] = texts[cut][:room]
    return result
