"""Minimal pairs: metrics, their intervals against SciPy's, and formulas of SyntaxGym."""

import numpy as np
import pytest
from scipy import stats

from official.xlnet.errors import DataError
from official.xlnet.inference.score import Score
from official.xlnet.projects.any_order.pairs import (
    norm_correlations,
    pair_metrics,
    prediction_margin,
    suite_margins,
)


def test_intervals_are_those_of_the_bootstrap_and_groups_are_apart():
    differences = np.random.default_rng(0).normal(0.5, 2, 83)
    groups = ["a" if n % 3 else 7 for n in range(83)]
    found = pair_metrics(differences, groups, seed=3)
    assert (found["pairs"], found["accuracy"]) == (83, np.mean(differences > 0))
    assert found["mean_difference"] == pytest.approx(differences.mean())
    for name, values in {"mean_difference": differences, "accuracy": differences > 0}.items():
        expected = stats.bootstrap((values,), np.mean, method="percentile").confidence_interval
        np.testing.assert_allclose(found[f"{name}_interval"], expected, atol=0.07)
    assert {name: group["pairs"] for name, group in found["groups"].items()} == {"7": 28, "a": 55}
    of_a = [value for value, group in zip(differences, groups, strict=True) if group == "a"]
    assert found["groups"]["a"] == pair_metrics(of_a, seed=3)


def test_norms_correlate_as_scipy_says_also_by_group():
    random = np.random.default_rng(1)
    norms = random.integers(0, 7, 83) / 7  # With ties.
    log_p, groups = norms + random.normal(0, 1, 83), [n % 3 for n in range(83)]
    found = norm_correlations(log_p, norms, groups)
    parts = {None: slice(None), "0": slice(0, None, 3), "1": slice(1, None, 3)}
    for name, part in parts.items():
        of_part = found["groups"][name] if name else found
        assert of_part["texts"] == len(norms[part])
        assert of_part["pearson"] == pytest.approx(stats.pearsonr(log_p[part], norms[part])[0])
        assert of_part["spearman"] == pytest.approx(stats.spearmanr(log_p[part], norms[part])[0])
    assert np.isnan([norm_correlations([1.0] * n, [2.0] * n)["pearson"] for n in (1, 3)]).all()


SURPRISALS = {("1", "good"): 2.0, ("2", "good"): 1.0, ("*", "good"): 3.0, ("2", "bad"): 4.5}


@pytest.mark.parametrize(
    ("formula", "margin"),
    [
        ("(2;%good%) < (2;%bad%)", 3.5),
        ("((2;%good%)+(1;%good%)) > (2;%bad%)", -1.5),
        ("[(2;%good%) < (2;%bad%)] & [(*;%good%) - (1;%good%) < 1.25]", 0.25),
        ("[(2;%good%) > (2;%bad%)] | [(2;%good%) = (2;%good%)]", 0.5),
    ],
)
def test_margins_of_predictions(formula, margin):
    assert prediction_margin(formula, SURPRISALS) == margin


@pytest.mark.parametrize(
    "formula", ["(9;%good%) < 1", "(2;%good%) <", "f(1)", "'a' < 'b'", "1 < 2 < 3"]
)
def test_other_formulas_are_named(formula):
    with pytest.raises(DataError, match=r"prediction .*: expected comparisons of regions"):
        prediction_margin(formula, SURPRISALS)


def test_pieces_are_of_the_region_that_they_begin_in():
    score = Score(
        "The cats", ["The", "cat", "s"], np.array([-1.0, -2.0, -4.0]), [(0, 3), (4, 7), (7, 8)]
    )
    row = {"item": 5, "condition": "x", "regions": {"1": (0, 3), "2": (4, 8), "3": (8, 8)}}
    formulas = ["(2;%x%) > (1;%x%)", "(*;%x%) > (3;%x%)"]
    found = suite_margins([row], [score], formulas)
    assert [each["difference"] for each in found] == [5.0, 7.0]
