"""Scores, continuations and blanks from a path: single strings, lists, empty texts."""

import numpy as np
import pytest

from official import xlnet
from official.xlnet.errors import DataError
from tests.helpers.small_language_model import random_model

TEXTS = ["now and then", "", "the water they find"]
GREEDY = xlnet.Sampling(temperature=0)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory, vocab_file):
    """(model directory, model, tokenizer)"""
    model = random_model(vocab_size=2000)
    directory = str(tmp_path_factory.mktemp("model"))
    xlnet.save_pretrained(model, directory, vocab_file)
    return directory, model, xlnet.load_tokenizer(directory)


def test_score(loaded):
    directory, model, tokenizer = loaded
    expected = xlnet.score(model, TEXTS, tokenizer=tokenizer)
    found = xlnet.score(directory, TEXTS)
    assert [result.text for result in found] == TEXTS
    assert [len(result.pieces) for result in found] == [len(tokenizer.encode(t)) for t in TEXTS]
    np.testing.assert_allclose([r.total for r in found], [r.total for r in expected], rtol=1e-6)
    alone = xlnet.score(model, TEXTS[2], tokenizer=tokenizer)
    np.testing.assert_allclose(alone.total, expected[2].total, rtol=1e-5)
    assert xlnet.score(model, TEXTS[0], "pseudo", tokenizer=tokenizer).total != expected[0].total


def test_generate(loaded):
    directory, model, tokenizer = loaded
    expected = xlnet.generate(model, TEXTS, 3, GREEDY, tokenizer=tokenizer)
    assert xlnet.generate(directory, TEXTS, 3, GREEDY) == expected
    assert xlnet.generate(model, TEXTS[0], 3, GREEDY, tokenizer) == expected[0]
    assert expected[0].startswith(TEXTS[0]) and expected[2].startswith(TEXTS[2])


def test_fill_blanks(loaded):
    directory, model, tokenizer = loaded
    text = "the ____ they find ____{2}"
    expected = xlnet.fill_blanks(model, text, tokenizer=tokenizer)
    assert xlnet.fill_blanks(directory, [text, "", " "]) == [expected, "", " "]
    assert xlnet.fill_blanks(model, text, tokenizer=tokenizer) == expected
    with pytest.raises(DataError, match="expected a blank"):
        xlnet.fill_blanks(directory, [text, "the water"])
