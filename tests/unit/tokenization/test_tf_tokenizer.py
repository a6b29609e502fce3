"""The tokenizer as TensorFlow operations gives the ids of the Python one."""

import itertools
import random
import sys
import unicodedata

import pytest
import tensorflow as tf

from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.compare import assert_same_items
from tests.helpers.oracles.tokenizer_oracle import SPECIAL_TEXT, nasty_lines, real_lines

KINDS = pytest.mark.parametrize(
    ("lowercase", "keep_accents"), list(itertools.product([False, True], repeat=2))
)


@pytest.fixture(scope="module")
def graph(vocab_file):
    return GraphTokenizer(Tokenizer(vocab_file))


def check_against_python(vocab_file, texts, lowercase, keep_accents):
    tokenizer = Tokenizer(vocab_file, lowercase, keep_accents)
    ids = tf.function(GraphTokenizer(tokenizer).__call__)(tf.constant(texts))
    assert ids.dtype == tf.int32
    assert_same_items(ids.to_list(), [row.tolist() for row in tokenizer.encode_batch(texts)])


@pytest.mark.parametrize(("lowercase", "keep_accents"), [(False, False), (True, True)])
def test_same_ids(vocab_file, lowercase, keep_accents):
    texts = [*real_lines(100), *nasty_lines(200), *SPECIAL_TEXT, "", " ", "Σ", "\u0301 a", "ΑΣ'"]
    texts += ["\0", "a\0b", "\ue000\0", "€ 5,000,000 £–€00000000000", "漢 000 é 5,000 " * 200]
    check_against_python(vocab_file, texts, lowercase, keep_accents)


@pytest.mark.slow
@KINDS
def test_same_ids_on_many_lines(vocab_file, lowercase, keep_accents):
    lines = real_lines(9000) + nasty_lines(9000)
    check_against_python(vocab_file, lines, lowercase, keep_accents)


@pytest.mark.parametrize("keep_accents", [False, True])
def test_ties_after_characters_that_normalization_changes(vocab_file, keep_accents):
    # `0 00` and `00 0` tie, so that rounding of the sum before them decides: unknown characters
    # need the library's score also where other characters become or compose them.
    draw = random.Random(0)
    every = map(chr, range(0x80, 0x30000))
    changed = [c for c in every if not unicodedata.is_normalized("NFKC", c)]
    hangul = [chr(draw.choice([0x1100, 0x1161, 0x11A8]) + i) for i in range(19)]
    texts = [
        draw.choices([*draw.choices(changed, k=9), *hangul, *"000000 "], k=60) for _ in range(900)
    ]
    check_against_python(vocab_file, ["".join(text) for text in texts], False, keep_accents)


@pytest.mark.nightly
@KINDS
def test_same_ids_of_every_character(vocab_file, lowercase, keep_accents):
    characters = [chr(i) for i in range(sys.maxunicode + 1) if not 0xD800 <= i < 0xE000]
    patterns = ("x{}y", "AΣ{}", "AΣ{}A", "{}Σ") if lowercase else ("x{}y",)
    texts = [pattern.format(c) for pattern in patterns for c in characters]
    check_against_python(vocab_file, texts, lowercase, keep_accents)


def test_what_is_not_utf8_is_replaced_as_python_does(vocab_file, graph):
    draw = random.Random(0)
    awkward = [0x61, 0x20, 0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0xFF]
    texts = [bytes(draw.choices(awkward, k=draw.randint(0, 9))) for _ in range(1000)]
    expected = Tokenizer(vocab_file).encode([t.decode("utf-8", "replace") for t in texts])
    assert graph(texts).to_list() == expected
