"""Intervals over clusters: coverage by simulation, and resamples that are drawn one by one."""

import numpy as np
import pytest
from scipy import stats

from official.xlnet.errors import ConfigError
from official.xlnet.projects.any_order.pairs import correlations, norm_correlations, pair_metrics
from official.xlnet.projects.any_order.pairs.bootstrap import interval
from official.xlnet.projects.any_order.pairs.regressions import log_likelihood_gain

RUNS = 200


def covers(truth, bounds):
    return bounds[0] <= truth <= bounds[1]


def test_intervals_over_clusters_cover_and_intervals_over_rows_do_not():
    """60 pairs of 10 nouns, each with its own difference; 95% intervals cover in 92 to 98%."""
    random = np.random.default_rng(0)
    by_noun = by_row = crossed = 0
    for _ in range(RUNS):
        noun, verb = np.repeat(np.arange(10), 6), np.tile(np.arange(6), 10)
        differences = 0.5 + random.normal(0, 2, 10)[noun] + random.normal(0, 1, 60)
        found = pair_metrics(differences, clusters=[noun])
        assert found["clusters"] == [10]
        by_noun += covers(0.5, found["mean_difference_interval"])
        by_row += covers(0.5, pair_metrics(differences)["mean_difference_interval"])
        both = differences + random.normal(0, 2, 6)[verb]
        found = pair_metrics(both, clusters=[noun, verb])
        crossed += covers(0.5, found["mean_difference_interval"])
    noise = 2.6 * np.sqrt(0.95 * 0.05 / RUNS)
    assert by_noun / RUNS == pytest.approx(0.95, abs=noise)
    assert crossed / RUNS >= 0.95 - noise
    assert by_row / RUNS < 0.8


def test_resamples_are_those_of_rows_that_are_repeated():
    random = np.random.default_rng(1)
    values, other = random.integers(0, 5, 23).astype(float), random.normal(0, 1, 23)
    counts = random.multinomial(23, np.full(23, 1 / 23), size=7)
    found = correlations(values, other, counts)
    for row, counts_of_row in zip(found, counts, strict=True):
        first, second = np.repeat(values, counts_of_row), np.repeat(other, counts_of_row)
        assert row[0] == pytest.approx(stats.pearsonr(first, second)[0])
        assert row[1] == pytest.approx(stats.spearmanr(first, second)[0])
    assert np.isnan(correlations(np.ones(23), other, counts)).all()


def test_clusters_are_drawn_whole():
    """Two kinds: a row counts as often as both of its clusters together."""
    seen = []

    def total(counts):
        seen.append(counts)
        return counts.sum(axis=1)[:, None].astype(float)

    rows, columns = np.repeat(np.arange(3), 4), np.tile(list("abcd"), 3)
    interval(total, 12, [rows, columns])
    counts = np.concatenate(seen[:-1]).reshape([-1, 3, 4])
    assert len(counts) == 2000
    ranks = np.linalg.matrix_rank(counts)
    assert ranks.max() == 1  # Products of the counts of the two kinds.
    assert (counts.sum((1, 2)) == 12).all()
    np.testing.assert_allclose(counts.mean(0), 1, atol=0.15)
    assert np.isnan(interval(total, 12, [np.zeros(12)])).all()  # One cluster has no interval.


def test_correlations_of_clusters_have_wider_intervals():
    random = np.random.default_rng(2)
    frame = np.repeat(np.arange(12), 8)
    log_p = random.normal(0, 1, 12)[frame] + random.normal(0, 0.3, 96)
    norms = random.normal(0, 1, 12)[frame] + random.normal(0, 0.3, 96)
    widths = []
    for clusters in ([np.arange(96)], [frame]):
        found = norm_correlations(log_p, norms, clusters=clusters)
        low, high = found["pearson_interval"]
        assert low < found["pearson"] < high
        assert found["spearman_interval"][0] < found["spearman"]
        widths.append(high - low)
    assert widths[1] > 1.5 * widths[0]
    groups = ["a"] * 48 + ["b"] * 48
    found = norm_correlations(log_p, norms, groups, clusters=[frame])
    assert [part["clusters"] for part in found["groups"].values()] == [[6], [6]]
    assert found["groups"]["b"] == norm_correlations(log_p[48:], norms[48:], clusters=[frame[48:]])


def test_the_gain_in_log_likelihood_is_that_of_scipy_left_out_by_left_out():
    """With as many folds as clusters, so that chance has no part in them."""
    random = np.random.default_rng(3)
    subject = np.repeat(np.arange(7), 9)
    lengths, surprisals = random.integers(1, 9, 63), random.gamma(2, 2, 63)
    times = 200 + 10 * lengths + 9 * surprisals + random.normal(0, 15, 63)
    found = log_likelihood_gain(times, surprisals, lengths[:, None], [subject])
    gains = []
    for left_out in range(7):
        rest = subject != left_out
        log_p = []
        for columns in ([np.ones(63), lengths], [np.ones(63), lengths, surprisals]):
            x = np.stack(columns, axis=1)
            weights = np.linalg.inv(x[rest].T @ x[rest]) @ x[rest].T @ times[rest]
            errors = times - x @ weights
            scale = np.sqrt(np.mean(errors[rest] ** 2))
            log_p.append(stats.norm.logpdf(errors[~rest], scale=scale))
        gains.append(log_p[1] - log_p[0])
    assert found["log_likelihood_gain"] == pytest.approx(np.mean(gains))
    assert found["coefficient"] == pytest.approx(weights[-1], abs=1)
    low, high = found["log_likelihood_gain_interval"]
    assert 0 < low < found["log_likelihood_gain"] < high
    unrelated = log_likelihood_gain(times, random.gamma(2, 2, 63), lengths[:, None])
    assert unrelated["log_likelihood_gain"] < found["log_likelihood_gain"] / 3
    with pytest.raises(ConfigError, match="cluster"):
        log_likelihood_gain(times, surprisals, lengths[:, None], [np.zeros(63)])
    with pytest.raises(ConfigError, match="baseline"):
        log_likelihood_gain(times[:3], surprisals[:3], lengths[:3, None])
