"""The mixture over all orders: the density that draws an order of a text first.

A trained network gives the same text another probability in each order π. Their mean over all
orders is a density, too, and is estimated from random orders.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from official.xlnet.configs.registry import ORDER_ESTIMATES

# Where bias and standard error are told: in simulations of orders of many kinds, intervals of 95%
# that are told and miss the truth are then 8% of all at most (`test_mixtures.py`).
_LEAST_ORDERS = 64
_LEAST_EFFECTIVE_SHARE = 0.5
_LEAST_TAIL = 5  # Orders; from fewer, a tail has no shape.


class Mixture(NamedTuple):
    """Estimate of log p(x) = log mean_π p_π(x), the mixture over all orders, from n random orders.

    The estimate is log (1/n) Σ p_π(x), a lower bound: its expectation rises with n to the mixture
    (Burda et al., 2016), from the mean of log p_π(x) at n = 1, and it exceeds the mixture by c nats
    with a probability of at most exp(-c), in any model. How far it is below the mixture cannot be
    told where few of the n orders make up the mean: an order that was not drawn may outweigh them.

    Attributes:
      log_likelihood: the estimate, in nats.
      bias: its bias to first order in 1/n, -var(p_π) / (2 n mean(p_π)²): below 0. None for fewer
        than 64 orders, or if the effective ones are fewer than half of them, as neither bias nor
        standard error can be estimated then.
      standard_error: to first order in 1/n; None where `bias` is.
      effective_orders: (Σ p_π)² / Σ p_π², from 1, if one order outweighs all others, to n.
      k_hat: shape of the tail of p_π, as in Pareto-smoothed importance sampling (Vehtari et al.,
        2024): above 0.7, the estimate is unreliable for any n in reach. None for fewer than 21
        orders, or if too few of them differ.
    """

    log_likelihood: float
    bias: float | None
    standard_error: float | None
    effective_orders: float
    k_hat: float | None


@ORDER_ESTIMATES.register("mixture")
def mixture(totals: np.ndarray) -> Mixture | None:
    """Returns the estimate of a text's mixture from its `order_totals`; None for fewer than two.

    Args:
      totals: float64 [n], log-likelihoods of the text under random orders.

    Example:
      >>> mixture(np.log([0.1, 0.3])).log_likelihood  # log 0.2
      -1.609...
    """
    count = len(totals)
    if count < 2:
        return None
    estimate = float(logsumexp(totals) - math.log(count))
    relative = np.exp(totals - estimate)  # p_π(x) divided by the estimate: their mean is 1.
    effective_orders = float(count / np.mean(relative**2))
    bias = error = None
    if count >= _LEAST_ORDERS and effective_orders >= _LEAST_EFFECTIVE_SHARE * count:
        relative_variance = np.var(relative, ddof=1)
        bias = float(-relative_variance / (2 * count))
        error = float(np.sqrt(relative_variance / count))
    return Mixture(estimate, bias, error, effective_orders, tail_shape(totals))


def tail_shape(log_weights: np.ndarray) -> float | None:
    """Returns k-hat, the shape of the largest of some weights (Vehtari et al., 2024).

    It is the shape of the generalized Pareto distribution of the excess of the largest min(n/5,
    3√n) weights over the next one, with a weak prior at 1/2.

    Args:
      log_weights: float64 [n], logarithms of the weights.

    Returns:
      None for a tail of fewer than 5 different weights.
    """
    count = len(log_weights)
    num_in_tail = math.ceil(min(count / 5, 3 * math.sqrt(count)))
    if num_in_tail < _LEAST_TAIL:
        return None
    sorted_logs = np.sort(log_weights - np.max(log_weights))
    threshold = sorted_logs[-num_in_tail - 1]
    tail_logs = sorted_logs[-num_in_tail:]
    tail_logs = tail_logs[tail_logs > threshold]
    if len(np.unique(tail_logs)) < _LEAST_TAIL:
        return None
    # Positive also where the exponential of a logarithm is 0.
    excess = np.maximum(np.exp(tail_logs) - math.exp(threshold), np.finfo(float).tiny)
    shape, size = pareto_shape(excess), len(excess)
    return float((shape * size + 0.5 * 10) / (size + 10))


def pareto_shape(excess: np.ndarray) -> float:
    """Returns the shape k of a generalized Pareto distribution (Zhang and Stephens, 2009).

    The scale is integrated over its profile likelihood on a grid of θ = -k / scale.

    Args:
      excess: float64 [n], positive and ascending.
    """
    size = len(excess)
    num_points = 30 + math.isqrt(size)
    quartile = excess[int(size / 4 + 0.5) - 1]
    grid = 1 - np.sqrt(num_points / (np.arange(1, num_points + 1) - 0.5))
    theta_G = 1 / excess[-1] + grid / (3 * quartile)
    shape_G = np.log1p(-theta_G[:, None] * excess).mean(axis=1)
    log_profile_G = size * (np.log(-theta_G / shape_G) - shape_G - 1)
    weight_G = np.exp(log_profile_G - logsumexp(log_profile_G))
    theta = float(theta_G @ weight_G)
    return float(np.log1p(-theta * excess).mean())
