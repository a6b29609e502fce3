"""The mixture over orders: coverage by simulation, and the shape of tails that are known."""

import numpy as np
import pytest
from scipy import stats

from official.xlnet.projects.any_order.mixtures import mixture, pareto_shape, tail_shape

RUNS = 200
DEVIATIONS = (0.1, 0.5, 0.8, 1.0, 1.5, 3.0)  # Of log p over orders, in nats.
COUNTS = (8, 64)


def simulated(kind, deviation, count, random):
    """Log-likelihoods of random orders [runs, orders], and the true mixture."""
    size = (RUNS, count)
    if kind == "normal":
        return random.normal(0, deviation, size), deviation**2 / 2
    if kind == "two kinds of orders":
        is_likely = random.random(size) < 0.5
        truth = deviation**2 / 8 + np.log((1 + np.exp(deviation)) / 2)
        return random.normal(0, deviation / 2, size) + deviation * is_likely, truth
    sign = 1 if kind == "rare likely orders" else -1
    scale = deviation / 4  # A gamma distribution of shape 16.
    return sign * random.gamma(16, scale, size), -16 * np.log(1 - sign * scale)


KINDS = ("normal", "two kinds of orders", "rare likely orders", "rare unlikely orders")


def test_intervals_that_are_told_cover_and_others_are_not_told():
    """The rate: of all intervals of 95%, those that are told and miss are 8% at most."""
    random = np.random.default_rng(0)
    tested = [(k, d, c) for k in KINDS for d in DEVIATIONS for c in COUNTS]
    noise = 2.6 * np.sqrt(0.08 * 0.92 / RUNS)
    num_covered = num_told = 0
    for kind, deviation, count in tested:
        totals, truth = simulated(kind, deviation, count, random)
        found = [mixture(of_run) for of_run in totals]
        estimates = np.array([each.log_likelihood for each in found])
        # In any model, 3 nats above the truth are as rare as exp(-3).
        assert np.mean(estimates > truth + 3) <= np.exp(-3), (kind, deviation, count)
        told = [each for each in found if each.standard_error is not None]
        quantile = stats.t.ppf(0.975, count - 1)
        covered = [
            abs(each.log_likelihood - each.bias - truth) < quantile * each.standard_error
            for each in told
        ]
        misses = (len(covered) - sum(covered)) / RUNS
        assert misses <= 0.08 + noise, (kind, deviation, count, misses)
        if count == 8 or deviation == 3:
            assert len(told) <= 0.01 * RUNS, (kind, deviation, count)
        if count >= 64 and deviation <= 0.5:
            assert len(told) > 0.98 * RUNS, (kind, deviation, count)
        num_covered, num_told = num_covered + sum(covered), num_told + len(told)
    assert num_covered / num_told == pytest.approx(0.94, abs=0.02)


def test_bias_and_error_are_those_of_many_draws():
    """In a text whose orders have the probabilities 0.02 to 0.1."""
    totals = np.log(np.linspace(0.02, 0.1, 9))
    random = np.random.default_rng(0)
    drawn = [mixture(random.choice(totals, 64)) for _ in range(4000)]
    estimates = np.array([each.log_likelihood for each in drawn])
    surplus = estimates - np.log(np.mean(np.exp(totals)))
    # Without the error of the mean probability, which has no bias.
    bias = np.mean(surplus - np.expm1(surplus))
    assert np.mean([each.bias for each in drawn]) == pytest.approx(bias, rel=0.05)
    errors = [each.standard_error for each in drawn]
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.05)


def test_the_effective_number_of_orders_is_their_number_if_equal_and_1_if_one_outweighs_all():
    assert mixture(np.full(7, -900.0)).effective_orders == pytest.approx(7)
    assert mixture(np.array([-900.0, -2000.0, -1990.0])).effective_orders == pytest.approx(1)
    weights = np.array([0.1, 0.2, 0.5])
    expected = weights.sum() ** 2 / (weights**2).sum()
    assert mixture(np.log(weights) - 50).effective_orders == pytest.approx(expected)
    assert mixture(np.zeros(1)) is None


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.7, 1.5])
def test_shapes_of_tails_are_found(shape):
    """Beside those that SciPy finds by maximum likelihood, and in any unit."""
    excess = np.sort(stats.genpareto.rvs(shape, scale=3, size=1500, random_state=1))
    assert pareto_shape(excess) == pytest.approx(shape, abs=0.1)
    by_scipy, _, _ = stats.genpareto.fit(excess, floc=0)
    assert pareto_shape(excess) == pytest.approx(by_scipy, abs=0.01)
    assert pareto_shape(1e-9 * excess) == pytest.approx(pareto_shape(excess))


def test_tails_have_a_shape_if_enough_orders_differ():
    random = np.random.default_rng(3)
    assert tail_shape(random.normal(size=20)) is None
    assert tail_shape(np.zeros(400)) is None
    assert tail_shape(random.choice([-9.0, -3.0, -1.0], 400)) is None
    light, heavy = random.normal(0, 0.3, 400), random.normal(0, 6, 400)
    assert tail_shape(light) < 0.3 and tail_shape(heavy) > 0.7
    assert tail_shape(light - 5000) == pytest.approx(tail_shape(light))
    spread = tail_shape(random.normal(0, 900, 400))  # Most weights are 0 in float64.
    assert np.isfinite(spread) and spread > 0.7
    pareto = np.log(1 + stats.genpareto.rvs(0.6, size=40_000, random_state=2))
    assert tail_shape(pareto) == pytest.approx(0.6, abs=0.15)
