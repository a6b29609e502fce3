"""How far the factorizations of a text are from each other; 0 for a consistent model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from official.xlnet.configs.registry import PUBLIC_NAMES
from official.xlnet.configs.validation import require
from official.xlnet.inference.text_parts import Span


class Consistency(NamedTuple):
    """How far the factorizations of one text are from each other; 0 for a consistent model.

    Attributes:
      deviation: standard deviation of log p over random orders, in nats.
      halves_gap: |log p(A) + log p(B | A) - log p(B) - log p(A | B)| of the two halves A and B of
        the text, each from left to right, in nats.
    """

    deviation: float
    halves_gap: float


@PUBLIC_NAMES.register("consistency")
def consistency(
    scorer: Any,
    texts: Sequence[str],
    num_orders: int = 8,
    seed: int = 0,
) -> list[Consistency]:
    """Measures how consistent a model is about texts of at least two tokens and at most a window.

    Args:
      scorer: the model, a `Scorer`.
      texts: the texts; one of fewer than two tokens has no halves, and a gap of 0.
      num_orders: number of random orders, at least 2.
      seed: of the orders.

    Raises:
      ConfigError: `num_orders` is below 2, or the model is causal.
      DataError: a text is longer than a window.

    Example:
      >>> consistency(scorer, ["The cat sat on the mat."])[0].halves_gap
      0.61
    """
    require(num_orders >= 2, "num_orders", "at least 2 orders to compare", num_orders)
    scorer.require_one_window(texts, "consistency")
    with scorer.tokenizer.uncounted():
        scores = scorer(texts, "random", num_orders, seed)
        middles = [_middle(score.offsets) for score in scores]
        gaps = _halves_gaps(scorer, texts, middles)
    deviations = [float(np.std(score.order_totals, ddof=1)) for score in scores]
    return [Consistency(*values) for values in zip(deviations, gaps, strict=True)]


def _middle(offsets: Sequence[Span]) -> int:
    """The character at which the second half of the tokens of a text begins; 0 without halves."""
    return offsets[len(offsets) // 2][0] if len(offsets) > 1 else 0


def _halves_gaps(scorer: Any, texts: Sequence[str], middles: Sequence[int]) -> list[float]:
    """`Consistency.halves_gap` of each text."""
    halved = [(text, middle) for text, middle in zip(texts, middles, strict=True) if middle]
    whole = [text for text, _ in halved]
    left = [[(0, middle)] for _, middle in halved]
    right = [[(middle, len(text))] for text, middle in halved]
    nothing: list[list[Span]] = [[] for _ in halved]

    def totals(targets: list[list[Span]], given: list[list[Span]]) -> np.ndarray:
        return np.array([score.total for score in scorer(whole, targets=targets, given=given)])

    left_first = totals(left, nothing) + totals(right, left)
    differences = left_first - totals(right, nothing) - totals(left, right)
    gaps = iter(np.abs(differences).tolist())
    return [next(gaps) if middle else 0.0 for middle in middles]
