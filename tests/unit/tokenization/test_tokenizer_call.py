"""Calling the tokenizer: inputs of the encoder, for any mixture of texts and pairs."""

import numpy as np
import pandas as pd
import pytest

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.tiny import tiny_encoder

TEXTS = ["now and then", "", "In 1,000 cafés they may find more water than one"]
PAIRS = ["the people there", "who", "his"]


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
    return Tokenizer(vocab_file)


def test_single_texts_by_hand(tokenizer):
    a, _, b = (tokenizer.encode(text) for text in TEXTS)
    packed = tokenizer(TEXTS)
    length = len(b) + 2
    assert {name: (x.dtype, x.shape) for name, x in packed.items()} == {
        "token_ids": (np.int32, (3, length)),
        "segment_ids": (np.int32, (3, length)),
        "is_padding": (bool, (3, length)),
    }
    assert packed["token_ids"][2].tolist() == [*b, 4, 3]
    assert packed["token_ids"][1].tolist() == [5] * (length - 2) + [4, 3]
    free = length - len(a) - 2
    assert packed["token_ids"][0].tolist() == [5] * free + [*a, 4, 3]
    assert packed["segment_ids"][0].tolist() == [4] * free + [0] * (len(a) + 1) + [2]
    assert packed["is_padding"].sum(axis=1).tolist() == [free, length - 2, 0]


@pytest.mark.parametrize("max_length", [None, 5, 9, 17])
@pytest.mark.parametrize("padding", ["longest", "max_length"])
def test_pairs_are_packed_as_in_fine_tuning(tokenizer, max_length, padding):
    if max_length is None and padding == "max_length":
        with pytest.raises(ConfigError, match="max_length: expected a number"):
            tokenizer(TEXTS, PAIRS, padding=padding)
        return
    packed = tokenizer(TEXTS, PAIRS, max_length, padding)
    ids = [[tokenizer.encode(a), tokenizer.encode(b)] for a, b in zip(TEXTS, PAIRS, strict=True)]
    longest = max(len(a) + len(b) + 3 for a, b in ids)
    expected = max_length if padding == "max_length" else min(longest, max_length or longest)
    assert packed["token_ids"].shape == (3, expected)
    for row, texts in enumerate(ids):
        one = {k: x[0] for k, x in pack_columns([[text] for text in texts], expected).items()}
        is_real = ~one["is_padding"]
        np.testing.assert_array_equal(packed["token_ids"][row][is_real], one["token_ids"][is_real])
        np.testing.assert_array_equal(packed["segment_ids"][row], one["segment_ids"])
        np.testing.assert_array_equal(packed["is_padding"][row], one["is_padding"])


def test_one_text_alone_is_truncated(tokenizer):
    a, b = tokenizer.encode(TEXTS[2]), tokenizer.encode(PAIRS[0])
    first = tokenizer(TEXTS[2], PAIRS[0], len(b) + 5, truncation="only_first")
    assert first["token_ids"].tolist() == [[*a[:2], 4, *b, 4, 3]]
    second = tokenizer(TEXTS[2], PAIRS[0], len(a) + 4, truncation="only_second")
    assert second["token_ids"].tolist() == [[*a, 4, b[0], 4, 3]]
    alone = tokenizer([TEXTS[2]], max_length=7, truncation="only_first")
    assert alone["token_ids"].tolist() == [[*a[:5], 4, 3]]
    with pytest.raises(DataError, match=r"input 0: expected at most 9 tokens, got \d+ in the text"):
        tokenizer(TEXTS[2], PAIRS[0], 9, truncation="only_second")


def test_the_encoder_takes_them_and_padding_changes_nothing(tokenizer):
    encoder = tiny_encoder(vocab_size=2000)
    together = encoder(tokenizer(TEXTS))["content"]
    for row, text in enumerate(TEXTS):
        alone = encoder(tokenizer(text))["content"][0]
        np.testing.assert_allclose(together[row, -2:], alone[-2:], atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (5, "expected a str or a list of str, got int 5"),
        (None, "expected a str or a list of str, got NoneType None"),
        (b"now", r"got bytes b'now'; bytes become text with \.decode\(\)"),
        (["now", 3], "text 1: expected a str, got int 3"),
        ([["now"]], "text 0: expected a str, got list"),
        ({"text": "now"}, "got dict"),
    ],
)
def test_what_is_no_text(tokenizer, wrong, message):
    with pytest.raises(TypeError, match=message):
        tokenizer.encode(wrong)
    with pytest.raises(TypeError, match=message):
        tokenizer(wrong)
    if wrong is not None:
        with pytest.raises(TypeError, match=message):
            tokenizer("now", wrong)


def test_wrong_arguments(tokenizer):
    with pytest.raises(
        ConfigError, match="padding: expected one of longest, max_length, got 'left'"
    ):
        tokenizer("now", padding="left")
    for several in (np.array(["longest", "longest"]), pd.Series(["longest"]), ["longest"]):
        for name in ("padding", "truncation"):
            with pytest.raises(ConfigError, match=f"{name}: expected one of longest"):
                tokenizer("now", **{name: several})
    message = "truncation: expected one of longest_first, only_first, got 'only_second'"
    with pytest.raises(ConfigError, match=message):
        tokenizer("now", truncation="only_second")
    with pytest.raises(DataError, match="input length: expected at least 3"):
        tokenizer("now", max_length=2)
    with pytest.raises(DataError, match="expected equal numbers of rows"):
        tokenizer(["now", "then"], ["now"])
    assert tokenizer([])["token_ids"].shape[0] == 0
