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


class Mixture(NamedTuple):
    """Estimate of log p(x) = log mean_π p_π(x), the mixture over all orders, from n random orders.

    The estimate is log (1/n) Σ p_π(x). Its expectation is a lower bound of the mixture that rises
    with n (Burda et al., 2016), from the mean of log p_π(x) at n = 1.

    Attributes:
      log_likelihood: the estimate, in nats.
      bias: its bias to first order in 1/n, -var(p_π) / (2 n mean(p_π)²): below 0.
      standard_error: to first order in 1/n.
    """

    log_likelihood: float
    bias: float
    standard_error: float


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
    relative_variance = np.var(np.exp(totals - logsumexp(totals) + math.log(count)), ddof=1)
    return Mixture(
        float(logsumexp(totals) - math.log(count)),
        float(-relative_variance / (2 * count)),
        float(np.sqrt(relative_variance / count)),
    )
