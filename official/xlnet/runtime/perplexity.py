"""Perplexity that is always a number."""

from __future__ import annotations

import math

LARGEST_EXPONENT = 700.0  # Larger ones overflow float64.


def perplexity(loss: float) -> float:
    """Returns exp(loss); of a loss above 700, exp(700).

    Args:
      loss: mean loss in nats.

    Example:
      >>> perplexity(math.log(7))
      7.0
    """
    return math.exp(min(loss, LARGEST_EXPONENT))
