"""Candidates of blanks: exact probabilities, with other blanks hidden."""

import numpy as np
import pytest

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.candidates import blank_candidates
from tests.helpers.small_language_model import NumberTokenizer, random_model

NUMBERS = NumberTokenizer(31)


@pytest.fixture(scope="module", params=["permutation", "denoising"])
def model(request, tokenizer):
    return random_model(vocab_size=tokenizer.vocab_size, kind=request.param)


@pytest.mark.parametrize("kind", ["permutation", "denoising"])
def test_a_wide_beam_enumerates_all_strings_and_a_narrow_one_is_exact(kind):
    """Of one or two pieces, while another blank is hidden."""
    model, pieces = random_model(kind=kind), range(9, 31)
    strings = [str(i) for i in pieces] + [f"{i} {j}" for i in pieces for j in pieces]
    text = "9 ____ 12 ____{2} 13"
    scorer, spans = Scorer(model, NUMBERS), {"targets": [], "given": []}
    filled = [text.replace("____{2}", "28 29").replace("____", string) for string in strings]
    for whole, string in zip(filled, strings, strict=True):
        end = 2 + len(string)
        spans["targets"].append([(2, end)])
        spans["given"].append([(0, 1), (end, end + 3), (len(whole) - 2, len(whole))])
    totals = [score.total for score in scorer.score(filled, **spans, whole_given=True)]
    expected = sorted(zip(totals, strings, strict=True), reverse=True)

    def found(number):
        return blank_candidates(model, text, number, NUMBERS, max_length=2)[0]

    everything = found(len(strings) + 1)
    assert [each.string for each in everything] == [string for _, string in expected]
    assert [each.rank for each in everything] == list(range(1, len(strings) + 1))
    p = np.exp([total for total, _ in expected])
    np.testing.assert_allclose([each.probability for each in everything], p, rtol=1e-3)
    narrow = found(3)
    assert narrow == everything[:3]  # 22 beams are enough here.


def test_candidates_are_strings_as_the_tokenizer_cuts_them(model, tokenizer):
    """So a list of the same strings gives the same probabilities."""
    number, text = 20, "The ____ sat on it."
    (found,) = blank_candidates(model, text, number, tokenizer, max_length=3)
    strings = [each.string for each in found]
    assert len(set(strings)) == number
    ((again,),) = blank_candidates(model, [text], strings, tokenizer)
    assert [each.string for each in again] == strings
    expected = [each.probability for each in again]
    np.testing.assert_allclose([each.probability for each in found], expected, rtol=1e-3)
    inside = blank_candidates(model, "un____ly", number, tokenizer, max_length=2)[0]
    assert len({each.string for each in inside}) == number
    assert not any(each.string.startswith(" ") for each in inside)


def test_a_candidate_may_begin_with_a_piece_that_is_only_a_space():
    class Letters(NumberTokenizer):  # `▁ b` is 9 10.
        def encode(self, text):
            return [9, *(ord(letter) - 88 for letter in text)] if text else []

        def decode(self, ids):
            return "".join(chr(88 + i) for i in ids if i > 9)

        def id_to_piece(self, i):
            return "▁" if i == 9 else chr(88 + i)

    model = random_model()
    found = blank_candidates(model, "____", 99, Letters(31), max_length=2)[0]
    totals = Scorer(model, NUMBERS)([f"9 {i}" for i in range(10, 31)])
    expected = {chr(88 + i): np.exp(score.total) for i, score in enumerate(totals, start=10)}
    assert {each.string: each.probability for each in found} == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("text", "candidates", "kind", "message"),
    [
        ("9 10", 3, "permutation", "expected a blank"),
        ("____ 9 ____", ["9"], "permutation", "one blank for given candidates, got 2"),
        ("9 " * 36 + "____", 3, "permutation", "at most 36 pieces, got 36 of text and 1 of"),
        ("9 ____", ["", "9"], "permutation", "strings that are not empty"),
        ("9 ____", [" ", "9"], "permutation", "strings that are not empty"),
        ("9 ____", 0, "permutation", "candidates: expected at least 1"),
        ("9 ____", 3, "causal", "permutation to fill blanks"),
    ],
)
def test_wrong_input_is_named(text, candidates, kind, message):
    with pytest.raises((ConfigError, DataError), match=message):
        blank_candidates(random_model(kind=kind), [text], candidates, tokenizer=NUMBERS)
