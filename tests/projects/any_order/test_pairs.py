"""Minimal pairs and norms: metrics, and their intervals against SciPy's."""

import numpy as np
import pytest
from scipy import stats

from official.xlnet.projects.any_order.pairs import norm_correlations, pair_metrics


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
