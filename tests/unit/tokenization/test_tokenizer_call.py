"""Calling the tokenizer: inputs of the encoder, for any mixture of texts and pairs."""

import random

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from official.xlnet.tokenization.graph.packing import (
    only,
    pack,
    pack_columns,
    padded,
    truncated_lengths,
)
from official.xlnet.tokenization.graph.ragged import ragged
from tests.helpers.compare import assert_refused

TEXTS = ["now and then", "", "In 1,000 cafés they may find more water than one"]
PAIRS = ["the people there", "who", "his"]


# Packing of ids.


def one_by_one(lengths, budget):
    """`_truncate_seq_pair` of the release, for any number of texts."""
    lengths = list(lengths)
    while sum(lengths) > budget:
        longest = max(range(len(lengths)), key=lambda k: (lengths[k], k))
        lengths[longest] -= 1
    return lengths


def test_truncation_cuts_the_longest_one_by_one():
    draw = random.Random(0)
    for budget in range(0, 41, 2):
        for number in range(1, 6):
            rows = [[draw.randint(0, 12) for _ in range(number)] for _ in range(15)]
            expected = [one_by_one(lengths, budget) for lengths in rows]
            assert truncated_lengths(tf.constant(rows), budget).numpy().tolist() == expected


@pytest.mark.slow
def test_pairs_differ_from_hf_as_the_page_says():
    """docs/differences.md: of two long texts, in an odd room, the one that has a token more."""
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordLevel({"a": 0}, unk_token="a")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    for room in range(2, 10):
        tokenizer.enable_truncation(room, strategy="longest_first")
        pairs = [(first, second) for first in range(12) for second in range(12)]
        here = truncated_lengths(tf.constant(pairs), room).numpy().tolist()
        for (first, second), lengths in zip(pairs, here, strict=True):
            segments = tokenizer.encode("a " * first, "a " * second).type_ids
            there = [segments.count(0), segments.count(1)]
            are_both_long = min(first, second) > room // 2
            if are_both_long and room % 2 and second >= first:
                assert (there, lengths) == ([room // 2, room // 2 + 1], [room // 2 + 1, room // 2])
            else:
                assert there == lengths


@pytest.mark.parametrize(
    ("texts", "length", "side", "token_ids", "segment_ids"),
    [
        ([[21, 22], [31]], 7, "right", [5, 21, 22, 4, 31, 4, 3], [4, 0, 0, 0, 1, 1, 2]),
        ([[21, 22, 23]], 4, "right", [21, 22, 4, 3], [0, 0, 0, 2]),
        ([[21, 22, 23], [31, 32]], 6, "right", [21, 22, 4, 31, 4, 3], [0, 0, 0, 1, 1, 2]),
        ([[21, 22, 23], [31, 32]], 6, "left", [22, 23, 4, 32, 4, 3], [0, 0, 0, 1, 1, 2]),
        ([[21, 22], []], 5, "left", [21, 22, 4, 4, 3], [0, 0, 0, 1, 2]),
        ([[21], [], [31]], 7, "right", [5, 21, 4, 4, 31, 4, 3], [4, 0, 0, 1, 2, 2, 3]),
        ([[], [8], [8], [9]], 8, "right", [4, 8, 4, 8, 4, 9, 4, 3], [0, 1, 1, 2, 2, 3, 3, 5]),
        ([[], [], [], [], [9]], 7, "right", [4, 4, 4, 4, 9, 4, 3], [0, 1, 2, 3, 5, 5, 6]),
    ],
)
def test_packing_by_hand(texts, length, side, token_ids, segment_ids):
    packed = pack_columns([[text] for text in texts], length, side)
    assert [x.dtype for x in packed.values()] == [np.int32, np.int32, bool]
    assert packed["token_ids"].tolist() == [token_ids]
    assert packed["segment_ids"].tolist() == [segment_ids]
    assert packed["is_padding"].tolist() == [[i == 4 for i in segment_ids]]


def test_rows_that_are_emptied_and_no_rows():
    features = only(pack([ragged([[21, 22], [31], []])], 9), tf.constant([True, False, True]))
    assert features["segment_ids"].to_list() == [[0, 0, 0, 2], [], [0, 2]]
    packed = padded(features, 5)
    assert packed["token_ids"].numpy().tolist() == [[5, 21, 22, 4, 3], [5] * 5, [5, 5, 5, 4, 3]]
    assert packed["is_padding"].numpy().sum(axis=1).tolist() == [1, 5, 3]
    assert pack_columns([[], []], 7)["token_ids"].shape == (0, 7)


# Texts.


@pytest.mark.parametrize("pairs", [None, PAIRS])
@pytest.mark.parametrize("max_length", [None, 5, 17])
@pytest.mark.parametrize("padding", ["longest", "max_length"])
def test_texts_and_pairs_are_packed_as_in_fine_tuning(tokenizer, pairs, max_length, padding):
    if max_length is None and padding == "max_length":
        assert_refused("max_length: expected a number", tokenizer, TEXTS, pairs, padding=padding)
        return
    columns = [tokenizer.encode(texts) for texts in (TEXTS, pairs) if texts]
    longest = max(sum(map(len, row)) + len(row) + 1 for row in zip(*columns, strict=True))
    length = max_length if padding == "max_length" else min(longest, max_length or longest)
    packed = tokenizer(TEXTS, pairs, max_length, padding)
    for name, values in pack_columns(columns, length).items():
        np.testing.assert_array_equal(packed[name], values)


def test_one_text_alone_is_truncated(tokenizer):
    a, b = tokenizer.encode(TEXTS[2]), tokenizer.encode(PAIRS[0])
    first = tokenizer(TEXTS[2], PAIRS[0], len(b) + 5, truncation="only_first")
    assert first["token_ids"].tolist() == [[*a[:2], 4, *b, 4, 3]]
    second = tokenizer(TEXTS[2], PAIRS[0], len(a) + 4, truncation="only_second")
    assert second["token_ids"].tolist() == [[*a, 4, b[0], 4, 3]]
    alone = tokenizer([TEXTS[2]], max_length=7, truncation="only_first")
    assert alone["token_ids"].tolist() == [[*a[:5], 4, 3]]
    assert_refused(
        r"input 0: expected at most 9 tokens, got \d+ in the text",
        tokenizer,
        TEXTS[2],
        PAIRS[0],
        9,
        truncation="only_second",
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, "expected a str or a list of str, got int 5"),
        (b"now", r"got bytes b'now'; bytes become text with \.decode\(\)"),
        (["now", 3], "text 1: expected a str, got int 3"),
        ([["now"]], "text 0: expected a str, got list"),
        ({"text": "now"}, "got dict"),
    ],
)
def test_what_is_no_text(tokenizer, wrong, message):
    for call in (tokenizer.encode, tokenizer, lambda pairs: tokenizer("now", pairs)):
        with pytest.raises(TypeError, match=message):
            call(wrong)


@pytest.mark.parametrize(
    ("texts", "arguments", "message"),
    [
        ("now", {"padding": "left"}, "expected one of longest, max_length, got 'left'"),
        ("now", {"padding": ["longest"]}, "padding: expected one of longest"),
        ("now", {"truncation": pd.Series(["longest"])}, "truncation: expected one of longest"),
        ("now", {"truncation": "only_second"}, "longest_first, only_first, got 'only_second'"),
        ("now", {"max_length": 2}, "input length: expected at least 3"),
        ("now", {"pairs": "then", "max_length": 3}, "expected at least 4 for 2 text"),
        (["now", "then"], {"pairs": ["now"]}, "expected equal numbers of rows"),
    ],
)
def test_wrong_arguments(tokenizer, texts, arguments, message):
    assert_refused(message, tokenizer, texts, **arguments)
