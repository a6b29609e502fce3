"""Orders of scoring: sums over all strings, permutations and functions, orders of extensions."""

import itertools

import numpy as np
import pytest

from official.xlnet.configs.registry import ORDERS
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference import scoring
from official.xlnet.inference.orders import least_context, register_order
from official.xlnet.inference.scoring import Scorer
from tests.helpers.small_language_model import NumberTokenizer, random_model

# Their graphs are those of test_scoring.py.
pytestmark = pytest.mark.usefixtures("eager")
PERMUTATIONS = [list(order) for order in itertools.permutations(range(3))]
STRINGS = [" ".join(map(str, ids)) for ids in itertools.product(range(10), repeat=3)]
IDS = [11, 30, 17, 9, 25, 28, 13]
TEXT = " ".join(map(str, IDS))
KINDS = ["permutation", "denoising"]


@pytest.fixture(scope="module")
def scorers():
    return {kind: Scorer(random_model(kind=kind), NumberTokenizer(31)) for kind in KINDS}


@pytest.mark.parametrize(
    ("kind", "orders"), [("permutation", PERMUTATIONS), ("denoising", [[1, 2, 0], [0, 1, 2]])]
)
def test_probabilities_of_all_strings_sum_to_1_in_every_order(kind, orders):
    scorer = Scorer(random_model(kind=kind, vocab_size=10), NumberTokenizer(10))
    totals = np.array([[score.total for score in scorer(STRINGS, order)] for order in orders])
    np.testing.assert_allclose(np.exp(totals).sum(axis=1), 1, atol=1e-6)
    assert np.std(totals, axis=0).max() > 0.01  # Orders matter.
    if kind == "permutation":
        one_each = [score.total for score in scorer(STRINGS[:6], PERMUTATIONS)]
        np.testing.assert_allclose(one_each, totals[range(6), range(6)], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_permutations_functions_and_registered_names_give_one_order(scorers, kind, monkeypatch):
    scorer, calls = scorers[kind], []

    def backwards(ids):
        calls.append(len(ids))
        return [range(len(of_text))[::-1] for of_text in ids]

    monkeypatch.setattr(ORDERS, "modules", {**ORDERS.modules})
    register_order("last_first")(lambda request: [[-np.arange(len(x.ids))] for x in request.parts])
    try:
        texts = [TEXT, "12 13 14", ""]
        named = scorer(texts, "last_first")
        for found, expected in zip(scorer(texts, backwards), named, strict=True):
            np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, atol=1e-5)
        assert calls == [3]
        [explicit] = scorer([TEXT], [6, 5, 4, 3, 2, 1, 0])
        np.testing.assert_allclose(explicit.log_likelihoods, named[0].log_likelihoods, atol=1e-5)
        assert abs(scorer([TEXT])[0].total - named[0].total) > 0.01
        with pytest.raises(DataError, match="one window for order=last_first"):
            scorer([" ".join(["12"] * 30)], "last_first")
    finally:
        del ORDERS["last_first"]


def test_what_is_no_order_is_refused(scorers):
    scorer = scorers["permutation"]
    for order in ("sideways", [0, 1], [[0, 1, 2, 3, 4, 5, 5]], [[0], [1]], lambda ids: []):
        with pytest.raises(ConfigError, match="order"):
            scorer([TEXT], order)
    with pytest.raises(DataError, match="one window"):
        scorer([" ".join(["12"] * 30)], list(range(30)))
    causal = Scorer(random_model(kind="causal"), NumberTokenizer(31))
    with pytest.raises(ConfigError, match="permutation"):
        causal([TEXT], [0, 1, 2, 3, 4, 5, 6])


def test_contexts_shorter_than_in_training_are_named_once(scorers, caplog):
    """Two of 7 tokens of the first part are targets, and three of 23 in all: 5 and 20 are seen."""
    scorer = Scorer(random_model(), NumberTokenizer(31))
    scoring._warn_once.cache_clear()
    assert least_context(random_model().config) == 5
    scorer([TEXT], "pseudo")
    scorer([TEXT], targets=[[(17, 19)]])
    assert "fewer" not in caplog.text
    scorer([TEXT])
    scorer([TEXT], "random", 3)
    Scorer(random_model(), NumberTokenizer(31))([TEXT])
    assert caplog.text.count("has learned to predict tokens from 5 others or more") == 1
    caplog.clear()
    scorers["denoising"]([TEXT], "pseudo")
    assert not caplog.text
