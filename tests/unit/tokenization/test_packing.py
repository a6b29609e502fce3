import random

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import DataError
from official.xlnet.tokenization.graph.packing import (
    pack_columns,
    pack_texts,
    truncated,
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
    for _ in range(3000):
        lengths = [draw.randint(0, 12) for _ in range(draw.randint(1, 5))]
        budget = draw.randint(0, 40)
        assert truncated_lengths(lengths, budget) == one_by_one(lengths, budget)


def test_one_and_two_texts_by_hand():
    packed = pack_texts([[21, 22, 23], [31]], 8)
    assert packed["token_ids"].tolist() == [5, 21, 22, 23, 4, 31, 4, 3]
    assert packed["segment_ids"].tolist() == [4, 0, 0, 0, 0, 1, 1, 2]
    assert packed["is_padding"].tolist() == [True] + [False] * 7
    packed = pack_texts([[21, 22, 23]], 4)
    assert packed["token_ids"].tolist() == [21, 22, 4, 3]
    assert packed["segment_ids"].tolist() == [0, 0, 0, 2]
    packed = pack_texts([[21, 22, 23, 24], [31, 32, 33]], 8)
    assert packed["token_ids"].tolist() == [21, 22, 23, 4, 31, 32, 4, 3]
    packed = pack_texts([[21, 22, 23, 24], [31, 32, 33]], 8, "left")
    assert packed["token_ids"].tolist() == [22, 23, 24, 4, 32, 33, 4, 3]
    assert truncated([21, 22], 0, "left") == truncated([21, 22], 0) == []
    assert truncated([21, 22], 5, "left") == truncated([21, 22], 5) == [21, 22]


def test_more_texts_by_hand():
    packed = pack_texts([[21], [], [31, 32], [41]], 11)
    assert packed["token_ids"].tolist() == [5, 5, 21, 4, 4, 31, 32, 4, 41, 4, 3]
    assert packed["segment_ids"].tolist() == [4, 4, 0, 0, 1, 2, 2, 2, 3, 3, 5]
    packed = pack_texts([[21], [], [31, 32], [41], [51]], 13)
    assert packed["segment_ids"].tolist() == [4, 4, 0, 0, 1, 2, 2, 2, 3, 3, 5, 5, 6]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("num_texts", [1, 2, 3, 5])
def test_graph_packs_alike(graph, num_texts, side):
    draw = random.Random(num_texts)
    columns = [
        [[draw.randint(9, 99) for _ in range(draw.choice((0, 1, 7, 19)))] for _ in range(31)]
        for _ in range(num_texts)
    ]
    ragged = [tf.ragged.constant(column, tf.int32) for column in columns]
    dynamic = tf.function(lambda columns, length: graph.pack(columns, length, side))
    for length in (num_texts + 2, 17, 23, 101):
        expected = pack_columns(columns, length, side)
        assert expected["token_ids"].shape == (31, length)
        for packed in (graph.pack(ragged, length, side), dynamic(ragged, tf.constant(length))):
            for name, values in expected.items():
                assert packed[name].numpy().dtype == values.dtype
                np.testing.assert_array_equal(packed[name], values)


def test_no_rows(graph):
    assert pack_columns([[], []], 7)["token_ids"].shape == (0, 7)
    nothing = graph(tf.constant([], tf.string))
    assert graph.pack([nothing, nothing], 7)["is_padding"].shape == (0, 7)


def test_what_cannot_be_packed(graph):
    with pytest.raises(DataError, match="expected at least 4 for 2 text"):
        pack_texts([[9], [9]], 3)
    with pytest.raises(DataError, match="expected at least 4 for 2 text"):
        graph.pack([graph(["a"]), graph(["a"])], 3)
    with pytest.raises(DataError, match="at least one text"):
        pack_columns([], 7)
    with pytest.raises(DataError, match=r"equal numbers of rows, got \[1, 2\]"):
        pack_columns([[[9]], [[9], [9]]], 7)
