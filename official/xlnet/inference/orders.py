"""Factorization orders of texts, the mixture over them, and how far they agree.

Each order π of the T tokens of a text factorizes its probability exactly:

    log p_π(x) = Σ_k log p(x_π(k) | x_π(1), …, x_π(k-1))

A trained network gives each order another value. `mixture` estimates the density that draws the
order first; `consistency` measures how far orders are from each other. An order that the network
chooses itself (`confidence`, `entropy`) is a distribution, too: the next position depends only on
the tokens before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from scipy.special import logsumexp

from official.xlnet.configs.choices import PREDICTS_ALL, SCORING_ORDERS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.inference.text_parts import Span, TextParts

# Positions in the sequence in which they are predicted, for all texts or one for each; or a
# function from the token ids of all texts to one for each.
Permutation = Sequence[int]
Order = (
    str | Permutation | Sequence[Permutation] | Callable[[list[np.ndarray]], Sequence[Permutation]]
)
# Tokens of a text are predicted in ascending order of these numbers, one for each of T tokens.
_NAMED: Mapping[str, Callable[[int], np.ndarray]] = {
    "right_to_left": lambda num_tokens: -np.arange(num_tokens),
    "inside_out": lambda num_tokens: np.abs(np.arange(num_tokens) - (num_tokens - 1) / 2),
}
# How certain a distribution log p [..., V] over the next token is.
CERTAINTY: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "confidence": lambda log_p: tf.reduce_max(log_p, axis=-1),
    "entropy": lambda log_p: tf.reduce_sum(tf.exp(log_p) * log_p, axis=-1),
}


PERMUTATION = "a permutation"  # What errors call an order that has no name.
# Orders of a whole text, not of each of its windows.
IN_ONE_WINDOW = {*_NAMED, *CERTAINTY, PERMUTATION}


def sort_keys(
    order: Order,
    parts: Sequence[TextParts],
    num_orders: int,
    seed: int,
    most_certain: Callable[[Sequence[TextParts], str], list[np.ndarray]],
) -> list[list[np.ndarray | None]]:
    """Returns for each text, for each of its orders, the sort keys of its tokens.

    Args:
      order: see `Scorer`.
      parts: the texts.
      num_orders: number of orders of each text, for `random`; other orders are one.
      seed: of the random orders.
      most_certain: the keys of the texts in an order that the model chooses, one of `CERTAINTY`.

    Returns:
      Keys, one for each token, of which the least is predicted first; None: from left to right.

    Raises:
      ConfigError: the order is unknown, or is not a permutation of the tokens of a text.
    """
    lengths = [len(text.ids) for text in parts]
    if isinstance(order, str):
        require_one_of("order", order, SCORING_ORDERS)
        if order == "random":
            generators = [np.random.default_rng([seed, draw]) for draw in range(num_orders)]
            draws = [generator.random(max(lengths, default=0)) for generator in generators]
            return [[*draws] for _ in parts]
        if order in CERTAINTY:
            return [[keys] for keys in most_certain(parts, order)]
        return [[_NAMED[order](length) if order in _NAMED else None] for length in lengths]
    permutations: Any = order([text.ids for text in parts]) if callable(order) else order
    if len(permutations) and np.ndim(permutations[0]) == 0:
        permutations = [permutations] * len(parts)
    expected = f"one permutation for each of {len(parts)} texts"
    require(len(permutations) == len(parts), "order", expected, len(permutations))
    for permutation, length in zip(permutations, lengths, strict=True):
        expected = f"a permutation of the positions 0 to {length - 1} of a text"
        require(sorted(permutation) == list(range(length)), "order", expected, list(permutation))
    return [[np.argsort(permutation)] for permutation in permutations]


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


class Consistency(NamedTuple):
    """How far the factorizations of one text are from each other; 0 for a consistent model.

    Attributes:
      deviation: standard deviation of log p over random orders, in nats.
      halves_gap: |log p(A) + log p(B | A) - log p(B) - log p(A | B)| of the two halves A and B of
        the text, each from left to right, in nats.
    """

    deviation: float
    halves_gap: float


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
        middles = [
            score.offsets[len(score.offsets) // 2][0] if len(score.offsets) > 1 else 0
            for score in scores
        ]
        halves = [(text, middle) for text, middle in zip(texts, middles, strict=True) if middle]
        both = [text for text, _ in halves]
        left = [[(0, middle)] for _, middle in halves]
        right = [[(middle, len(text))] for text, middle in halves]
        nothing: list[list[Span]] = [[] for _ in halves]
        totals = [
            [score.total for score in scorer(both, targets=targets, given=given)]
            for targets, given in ((left, nothing), (right, left), (right, nothing), (left, right))
        ]
    gaps = iter(np.abs(np.array([1, 1, -1, -1]) @ np.reshape(totals, [4, -1])).tolist())
    return [
        Consistency(float(np.std(score.order_totals, ddof=1)), next(gaps) if middle else 0.0)
        for score, middle in zip(scores, middles, strict=True)
    ]


def least_context(config: XLNetConfig) -> int:
    """Number of tokens of its window that each target saw at least when the model was trained.

    Args:
      config: the configuration that the model was pre-trained with.
    """
    data = config.data
    if config.objective.kind in PREDICTS_ALL:
        return 0
    first_budget = round(data.num_predict * data.reuse_len / data.seq_len)
    in_first = data.reuse_len - first_budget
    in_second = data.seq_len - data.num_predict + first_budget
    return max(0, min(in_first, in_second) if first_budget else in_second)
