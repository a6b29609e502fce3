"""Surprisal of words with their ends, against sums over all words that could stand there."""

import itertools
import json
import math

import numpy as np
import pytest

from official.xlnet import cli
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.words import words_of
from official.xlnet.projects.any_order.words.ends import WordEnds, surprisals_with_ends
from official.xlnet.tokenization.special_tokens import EOD_ID, EOP_ID, NUM_SPECIAL
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.small_language_model import random_model


@pytest.fixture(scope="module", params=["permutation", "causal"])
def scorer(request):
    tokenizer = Tokenizer(vocabulary_dir())
    return Scorer(random_model(vocab_size=tokenizer.vocab_size, kind=request.param), tokenizer)


def log_p_of_beginnings(scorer, ids):
    """log p(B) after some pieces: each piece that begins a word, and the ends, scored as a text.

    The tokenizer is replaced by one that reads ids, so that any of them can stand there.
    """
    tokenizer = scorer.tokenizer
    starts = [EOD_ID, EOP_ID]
    for i in range(NUM_SPECIAL, tokenizer.vocab_size):
        if tokenizer.id_to_piece(i).startswith("▁"):
            starts.append(i)
    encode = tokenizer.encode_with_offsets
    rows = {f"row {i}": [*ids, i] for i in starts}
    tokenizer.encode_with_offsets = lambda text: (
        rows[text],
        [(n, n + 1) for n in range(len(rows[text]))],
    )
    try:
        scores = scorer(list(rows), given=[[(0, len(ids))] if ids else [] for _ in rows])
    finally:
        tokenizer.encode_with_offsets = encode
    return np.logaddexp.reduce([score.log_likelihoods[-1] for score in scores])


@pytest.mark.usefixtures("eager")
def test_ends_are_sums_over_the_pieces_that_begin_a_word(scorer):
    texts = ["the water", "people of"]
    found = WordEnds(scorer)(texts)
    for text, log_p in zip(texts, found, strict=True):
        ids = scorer.tokenizer.encode(text)
        assert len(log_p) == len(ids) + 1
        expected = [log_p_of_beginnings(scorer, ids[:n]) for n in range(len(ids) + 1)]
        np.testing.assert_allclose(log_p, expected, rtol=2e-4, atol=2e-5)


@pytest.mark.usefixtures("eager")
def test_surprisals_still_sum_to_that_of_the_text(scorer):
    texts = ["the water was, made", "of", ""]
    targets = [[(4, 19)], [(0, 2)], []]
    ends = WordEnds(scorer)(texts, targets)
    scores = scorer(texts, targets=targets)
    for score, log_ends in zip(scores, ends, strict=True):
        assert len(log_ends) == len(score.pieces) + 1
        for unit, scale in (("nats", 1.0), ("bits", math.log(2.0))):
            words = words_of(score, unit=unit)
            with_ends = surprisals_with_ends(words, log_ends, unit)
            assert len(with_ends) == len(words)
            expected = (-score.total + log_ends[0] - log_ends[-1]) / scale
            assert math.fsum(with_ends) == pytest.approx(expected if words else 0.0, abs=1e-9)


def test_others_are_refused(scorer):
    long = " ".join(itertools.repeat("water", 40))
    with pytest.raises(DataError, match=r"at most \d+ tokens for word_ends"):
        WordEnds(scorer)([long])
    with pytest.raises(DataError, match="a context on the left for word_ends"):
        WordEnds(scorer)(["the water"], [[(0, 3)]])
    tokenizer = scorer.tokenizer
    masked = random_model(vocab_size=tokenizer.vocab_size, kind="denoising")
    with pytest.raises(ConfigError, match="word_ends: expected a model that predicts from left"):
        WordEnds(Scorer(masked, tokenizer))


def test_the_verb_writes_both(capfd, world, tmp_path):
    (tmp_path / "a.csv").write_text("item,text,context\n1,water was made,the\n2,people,\n")
    arguments = [f"--model={world.pretrained}", f"--input={tmp_path}/a.csv", "--unit=bits"]
    rows = {}
    for flags in ([], ["--word_ends"]):
        assert cli.main(["words", *arguments, *flags]) == 0
        rows[len(flags)] = [json.loads(x) for x in capfd.readouterr().out.splitlines()[:-1]]
    with_ends = [row.pop("surprisal_with_end") for row in rows[1]]
    assert rows[1] == rows[0]
    assert [row["word"] for row in rows[0]] == ["water", "was", "made", "people"]
    ends = WordEnds(Scorer(world.pretrained))(
        ["the water was made", "people"], [[(4, 18)], [(0, 6)]]
    )
    expected = []
    for number, log_ends in enumerate(ends, start=1):
        words = [row for row in rows[0] if row["text_id"] == number]
        stops = np.cumsum([0, *(row["pieces"] for row in words)])
        for row, start, stop in zip(words, stops[:-1], stops[1:], strict=True):
            change = (log_ends[start] - log_ends[stop]) / math.log(2.0)
            expected.append(row["surprisal"] + change)
    assert with_ends == pytest.approx(expected, rel=1e-4)
