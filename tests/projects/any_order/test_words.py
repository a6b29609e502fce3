"""Words of a text: their pieces, their places, and sums that are exact."""

import math

import numpy as np
import pytest

from official.xlnet.errors import ConfigError
from official.xlnet.inference.score import Score
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.words import words_of
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.small_language_model import random_model


def scored(text, pieces):
    """A score of pieces that stand in the text one after the other, of 1, 2, 4, … nats."""
    offsets, stop = [], 0
    for piece in pieces:
        start = text.index(piece, stop)
        stop = start + len(piece)
        offsets.append((start, stop))
    return Score(text, pieces, -(2.0 ** np.arange(len(pieces))), offsets)


@pytest.mark.parametrize(
    ("text", "pieces", "punctuation", "expected"),
    [
        ("The unfit, too.", "The un fit , too .", "attached", "The=1 unfit,=14 too.=48"),
        ("The unfit, too.", "The un fit , too .", "alone", "The=1 unfit=6 ,=8 too=16 .=32"),
        ("I don't (1,000)", "I don ' t ( 1,0 00 )", "alone", "I=1 don't=14 (=16 1,000=96 )=128"),
        ("在 2024年", "在 20 24 年", "attached", "在=1 2024=6 年=8"),
        ("今天好。", "今天 好 。", "attached", "今天=1 好=2 。=4"),
        ("a b", "a b", "attached", "a=1 b=2"),
        ("to day", "to\u0020d ay", "attached", "to\u0020day=3"),
    ],
)
def test_pieces_are_of_the_word_that_they_begin_in(text, pieces, punctuation, expected):
    pieces = [piece.replace("\u0020", " ") for piece in pieces.split(" ")]
    if text == "to day":  # A piece over two words.
        pieces = ["to d", "ay"]
    words = words_of(scored(text, pieces), punctuation)
    found = " ".join(f"{word.word}={word.surprisal:g}" for word in words)
    assert found == expected
    assert [word.number for word in words] == [*range(1, len(words) + 1)]
    assert all(text[word.start : word.end] == word.word for word in words)
    assert words[-1].cumulated == 2 ** len(pieces) - 1


def test_words_sum_to_the_score_exactly(vocab_file):
    tokenizer = Tokenizer(vocab_file)
    scorer = Scorer(random_model(vocab_size=tokenizer.vocab_size), tokenizer)
    text = "  The ﬁrst, “evaluated”\tsentence —  and\nmore 1,000 times…  "
    for given, first in ([], 0), ([(0, 6)], 1):
        (result,) = scorer.score([text], given=[given])
        words = words_of(result)
        assert [word.word for word in words] == text.split()[first:]
        assert sum(word.pieces for word in words) == len(result.pieces)
        assert words[-1].cumulated == -result.total
        assert math.fsum(word.surprisal for word in words) == pytest.approx(
            -result.total, rel=1e-15
        )
        bits = words_of(result, unit="bits")
        assert bits[-1].cumulated == pytest.approx(-result.total / math.log(2))
    assert words_of(scorer([""])[0]) == []


def test_wrong_words_are_named():
    for wrong, message in (({"unit": "bans"}, "unit: expected"), ({"punctuation": "no"}, "punctu")):
        with pytest.raises(ConfigError, match=message):
            words_of(scored("a", ["a"]), **wrong)
