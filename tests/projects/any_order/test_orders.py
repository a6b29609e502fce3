"""Orders of scoring: sums over all strings, brute force over all orders, steps by the layers."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.inference.scoring import Scorer
from official.xlnet.projects.any_order.consistency import consistency, mean_consistency
from official.xlnet.projects.any_order.mixtures import mixture
from tests.helpers.small_language_model import NumberTokenizer, random_model

PERMUTATIONS = [list(order) for order in itertools.permutations(range(3))]
STRINGS = [" ".join(map(str, ids)) for ids in itertools.product(range(10), repeat=3)]
IDS = [11, 30, 17, 9, 25, 28, 13]
TEXT = " ".join(map(str, IDS))


KINDS = ["permutation", "denoising"]


@pytest.fixture(scope="module")
def models():
    return {kind: random_model(kind=kind) for kind in KINDS}


@pytest.fixture(scope="module")
def scorers(models):
    return {kind: Scorer(model, NumberTokenizer(31)) for kind, model in models.items()}


@pytest.mark.parametrize(
    ("kind", "orders"),
    [
        ("permutation", [*PERMUTATIONS, "right_to_left", "inside_out", "confidence", "entropy"]),
        pytest.param("denoising", [[1, 2, 0], "entropy"], marks=pytest.mark.quick),
    ],
)
def test_probabilities_of_all_strings_sum_to_1_in_every_order(kind, orders):
    scorer = Scorer(random_model(kind=kind, vocab_size=10), NumberTokenizer(10))
    totals = np.array([[score.total for score in scorer(STRINGS, order)] for order in orders])
    np.testing.assert_allclose(np.exp(totals).sum(axis=1), 1, atol=1e-6)
    assert np.std(totals, axis=0).max() > 0.01  # Orders matter.
    if kind == "permutation":
        for of_string in totals[:6, :20].T:
            brute_force = np.log(np.mean(np.exp(of_string)))
            assert mixture(of_string).log_likelihood == pytest.approx(brute_force, abs=1e-6)
        one_each = [score.total for score in scorer(STRINGS[:6], PERMUTATIONS)]
        np.testing.assert_allclose(one_each, totals[range(6), range(6)], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_names_permutations_and_functions_give_one_order(scorers, kind):
    scorer, calls = scorers[kind], []

    def backwards(ids):
        calls.append(len(ids))
        return [range(len(of_text))[::-1] for of_text in ids]

    texts = [TEXT, "12 13 14", ""]
    named = scorer(texts, "right_to_left")
    for found, expected in zip(scorer(texts, backwards), named, strict=True):
        np.testing.assert_allclose(found.log_likelihoods, expected.log_likelihoods, atol=1e-5)
    assert calls == [3]
    [inside] = scorer([TEXT], "inside_out")
    [explicit] = scorer([TEXT], [3, 2, 4, 1, 5, 0, 6])
    np.testing.assert_allclose(inside.log_likelihoods, explicit.log_likelihoods, atol=1e-5)
    assert abs(inside.total - named[0].total) > 0.01


@pytest.mark.parametrize("by", ["confidence", "entropy"])
def test_the_next_token_is_the_one_that_the_model_is_most_certain_of(models, scorers, by):
    """By a pass of the layers for each token; a given token comes first, a hidden one never."""
    ids = [30, 11, 17, 12, 25, 28, 13]
    text = " ".join(map(str, ids))
    for given, hidden, whole in (([], [], True), ([2, 4], [1, 6], False), ([2, 4], [1, 6], True)):
        rank_T = np.full(7, 99)
        rank_T[given] = 0 if whole else range(len(given))
        targets = [n for n in range(7) if n not in [*given, *hidden]]
        left, total = {*targets}, 0.0
        while left:
            inputs = {"token_ids": ids, "order": rank_T, "target_positions": range(7)}
            inputs = {name: tf.constant([list(x)], tf.int32) for name, x in inputs.items()}
            logits_TV = models["permutation"](inputs)["logits"].numpy()[0]
            log_p_TV = log_softmax(logits_TV.astype(float), axis=1)
            entropy_T = -(np.exp(log_p_TV) * log_p_TV).sum(1)
            certainty_T = log_p_TV.max(1) if by == "confidence" else -entropy_T
            place = max(
                sorted(left), key=lambda n, certainty_T=certainty_T: certainty_T[n].round(4)
            )
            total += log_p_TV[place, ids[place]]
            rank_T[place] = 7 - len(left)
            left.remove(place)
        spans = [
            [[(3 * n, 3 * n + 2) for n in part], [(3 * (part == given), 2 + 3 * (part == given))]]
            for part in (given, targets)
        ]
        if not given:
            spans = [None, None]
        parts = {"given": spans[0], "targets": spans[1], "whole_given": whole}
        found = scorers["permutation"]([text, "12 13"], by, **parts)[0]
        assert found.total == pytest.approx(total, abs=1e-4)


def test_consistency_is_0_without_knowledge_and_as_by_hand_with(scorers):
    empty = random_model(std=0.0)
    for variable in empty.trainable_variables:
        variable.assign(0 * variable)
    for found in consistency(Scorer(empty, NumberTokenizer(31)), [TEXT, "12 13"], 3):
        np.testing.assert_allclose(found, 0, atol=1e-5)
    scorer = scorers["permutation"]
    [found, single] = consistency(scorer, [TEXT, "12"], 5, seed=3)
    order_totals = scorer([TEXT], "random", 5, 3)[0].order_totals
    assert found.deviation == pytest.approx(np.std(order_totals, ddof=1)) and found.deviation > 0.1
    left, right = [[(0, len("11 30 17"))]], [[(len("11 30 17 "), len(TEXT))]]
    parts = ((left, [[]]), (right, left), (right, [[]]), (left, right))
    log_p = [scorer([TEXT], targets=part, given=given)[0].total for part, given in parts]
    expected = abs(log_p[0] + log_p[1] - log_p[2] - log_p[3])
    assert found.halves_gap == pytest.approx(expected, abs=1e-4) and expected > 0.1
    assert single == (None, None)


class OneCharacterTokenizer(NumberTokenizer):
    """All tokens are of the first character, as those of `…` or `½`."""

    def encode_with_offsets(self, text):
        ids, _ = super().encode_with_offsets(text)
        return ids, [(0, 1)] * len(ids)


def test_halves_are_cut_in_tokens(models, scorers):
    texts = [TEXT, "12 13", "12 13 14"]
    expected = consistency(scorers["permutation"], texts, 2)
    one_character = Scorer(models["permutation"], OneCharacterTokenizer(31))
    np.testing.assert_allclose(consistency(one_character, texts, 2), expected, atol=1e-5)
    assert min(values.halves_gap for values in expected) > 1e-3


def test_undefined_consistency_is_left_out_of_means_and_counted(scorers):
    texts = [TEXT, "", "12", "12 13", "30"]
    measured = consistency(scorers["permutation"], texts, 3)
    assert [None in values for values in measured] == [False, True, True, False, True]
    means = mean_consistency(measured)
    assert means.pop("compared_texts") == 2
    for name, mean in means.items():
        defined = [
            getattr(values, name) for values in measured if getattr(values, name) is not None
        ]
        assert mean == pytest.approx(np.mean(defined)) and mean > 0
    nothing = {"deviation": None, "halves_gap": None, "compared_texts": 0}
    assert mean_consistency(measured[1:3]) == mean_consistency([]) == nothing


def test_what_is_no_order_is_refused(scorers):
    scorer = scorers["permutation"]
    for order in ("sideways", [0, 1], [[0, 1, 2, 3, 4, 5, 5]], [[0], [1]], lambda ids: []):
        with pytest.raises(ConfigError, match="order"):
            scorer([TEXT], order)
    with pytest.raises(DataError, match="one window"):
        scorer([" ".join(["12"] * 30)], "confidence")
    with pytest.raises(ConfigError, match="num_orders"):
        consistency(scorer, [TEXT], 1)
    num_windows = scorer.num_windows
    with pytest.raises(DataError, match="one window for consistency, got 30 tokens"):
        consistency(scorer, [TEXT, " ".join(["12"] * 30)], 2)
    assert scorer.num_windows == num_windows  # The error comes before the work.
    causal = Scorer(random_model(kind="causal"), NumberTokenizer(31))
    with pytest.raises(ConfigError, match="permutation"):
        causal([TEXT], [0, 1, 2, 3, 4, 5, 6])
