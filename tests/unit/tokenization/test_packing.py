import random

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import DataError
from official.xlnet.tokenization.graph.packing import (
    pack_columns,
    truncated_lengths,
)
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.tokenizer import Tokenizer


def one_by_one(lengths, budget):
    """`_truncate_seq_pair` of the release, for any number of texts."""
    lengths = list(lengths)
    while sum(lengths) > budget:
        longest = max(range(len(lengths)), key=lambda k: (lengths[k], k))
        lengths[longest] -= 1
    return lengths


@pytest.fixture(scope="module")
def graph(vocab_file):
    return GraphTokenizer(Tokenizer(vocab_file))


def test_truncation_cuts_the_longest_one_by_one():
    draw = random.Random(0)
    for budget in range(41):
        for number in range(1, 6):
            rows = [[draw.randint(0, 12) for _ in range(number)] for _ in range(15)]
            expected = [one_by_one(lengths, budget) for lengths in rows]
            assert truncated_lengths(tf.constant(rows), budget).numpy().tolist() == expected


def pack_texts(texts, length, side="right"):
    packed = pack_columns([[text] for text in texts], length, side)
    assert [x.dtype for x in packed.values()] == [np.int32, np.int32, bool]
    return {name: x[0].tolist() for name, x in packed.items()}


def test_one_and_two_texts_by_hand():
    packed = pack_texts([[21, 22, 23], [31]], 8)
    assert packed["token_ids"] == [5, 21, 22, 23, 4, 31, 4, 3]
    assert packed["segment_ids"] == [4, 0, 0, 0, 0, 1, 1, 2]
    assert packed["is_padding"] == [True] + [False] * 7
    packed = pack_texts([[21, 22, 23]], 4)
    assert packed["token_ids"] == [21, 22, 4, 3]
    assert packed["segment_ids"] == [0, 0, 0, 2]
    packed = pack_texts([[21, 22, 23, 24], [31, 32, 33]], 8)
    assert packed["token_ids"] == [21, 22, 23, 4, 31, 32, 4, 3]
    packed = pack_texts([[21, 22, 23, 24], [31, 32, 33]], 8, "left")
    assert packed["token_ids"] == [22, 23, 24, 4, 32, 33, 4, 3]
    for side in ("right", "left"):
        assert pack_texts([[21, 22], []], 5, side)["token_ids"] == [21, 22, 4, 4, 3]


def test_more_texts_by_hand():
    packed = pack_texts([[21], [], [31, 32], [41]], 11)
    assert packed["token_ids"] == [5, 5, 21, 4, 4, 31, 32, 4, 41, 4, 3]
    assert packed["segment_ids"] == [4, 4, 0, 0, 1, 2, 2, 2, 3, 3, 5]
    packed = pack_texts([[21], [], [31, 32], [41], [51]], 13)
    assert packed["segment_ids"] == [4, 4, 0, 0, 1, 2, 2, 2, 3, 3, 5, 5, 6]


def test_what_cannot_be_packed(graph):
    with pytest.raises(DataError, match="expected at least 4 for 2 text"):
        graph.pack([graph(["a"]), graph(["a"])], 3)
    with pytest.raises(DataError, match="at least one text"):
        pack_columns([], 7)
    with pytest.raises(DataError, match=r"equal numbers of rows, got \[1, 2\]"):
        pack_columns([[[9]], [[9], [9]]], 7)
