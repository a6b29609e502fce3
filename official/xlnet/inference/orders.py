"""Factorization orders of texts: from left to right, random, or one that a name stands for.

Each order π of the T tokens of a text factorizes its probability exactly:

    log p_π(x) = Σ_k log p(x_π(k) | x_π(1), …, x_π(k-1))

An order is given by a sort key for each token: tokens are predicted in ascending order of their
keys. `register_order` adds orders by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import ORDERS
from official.xlnet.configs.validation import require
from official.xlnet.errors import ConfigError
from official.xlnet.files.schema import shown
from official.xlnet.inference.text_parts import TextParts

# Positions in the sequence in which they are predicted, for all texts or one for each; or a
# function from the token ids of all texts to one for each.
Permutation = Sequence[int]
Order = (
    str | Permutation | Sequence[Permutation] | Callable[[list[np.ndarray]], Sequence[Permutation]]
)
# For each text, for each of its orders, a sort key for each token; None: from left to right.
SortKeys = list[list[np.ndarray | None]]

PERMUTATION = "a permutation"  # What errors call an order that has no name.
# Orders of each window of a text; all others are orders of a text that fits in one window.
OF_WINDOWS = ("left_to_right", "random", "pseudo")


@dataclasses.dataclass(frozen=True)
class OrderRequest:
    """The texts to order, and what their orders may depend on.

    Attributes:
      parts: the texts: their tokens, and which of these are given, scored and hidden.
      num_orders: number of orders of each text, for orders that are drawn.
      seed: random seed of orders that are drawn.
      whole_given: whether given tokens attend to each other; see `Scorer`.
      config: the configuration that the model was pre-trained with.
      summary_of_predictions: see `ScoringPasses`; for orders that depend on what the model
        predicts.
    """

    parts: Sequence[TextParts]
    num_orders: int
    seed: int
    whole_given: bool
    config: XLNetConfig
    summary_of_predictions: Callable[..., Any]


def register_order(name: str) -> Callable[[Any], Any]:
    """Returns a decorator that registers a factorization order by name.

    The function takes an `OrderRequest` and returns, for each text, the list of its orders: a sort
    key for each token; the token with the smallest key is predicted first.

    Args:
      name: the value of `order`.

    Example:
      >>> @register_order("shortest_first")
      ... def shortest_first(request):
      ...     return [[np.diff(text.offsets, axis=1)[:, 0]] for text in request.parts]
    """
    return ORDERS.register(name)


@register_order("left_to_right")
def left_to_right(request: OrderRequest) -> SortKeys:
    """The order of the text."""
    return [[None] for _ in request.parts]


@register_order("pseudo")
def pseudo(request: OrderRequest) -> SortKeys:
    """No order: each token is given all others; see `Scorer`."""
    return [[None] for _ in request.parts]


@register_order("random")
def random(request: OrderRequest) -> SortKeys:
    """Random orders, the same for all texts in the positions that they share."""
    longest = max((len(text.ids) for text in request.parts), default=0)
    keys: list[np.ndarray | None] = []
    for draw in range(request.num_orders):
        keys.append(np.random.default_rng([request.seed, draw]).random(longest))
    return [list(keys) for _ in request.parts]


def sort_keys(order: Order, request: OrderRequest) -> SortKeys:
    """Returns the sort keys of the tokens of each text, for each of its orders.

    Args:
      order: see `Scorer`.
      request: the texts.

    Raises:
      ConfigError: the order is unknown, or is not a permutation of the tokens of a text.
    """
    if isinstance(order, str):
        return ORDERS[order](request)
    lengths = [len(text.ids) for text in request.parts]
    values: Any = order([text.ids for text in request.parts]) if callable(order) else order
    permutations = _permutations(values, len(lengths))
    for permutation, length in zip(permutations, lengths, strict=True):
        expected = f"a permutation of the positions 0 to {length - 1} of a text"
        is_permutation = sorted(permutation) == list(range(length))
        require(is_permutation, "order", expected, permutation)
    return [[np.argsort(permutation)] for permutation in permutations]


def _permutations(values: Any, num_texts: int) -> list[list[int]]:
    """The permutation of each text, from one for all texts or one for each."""
    expected = "a name, a permutation or one for each text, or a function of token ids to these"
    try:
        permutations = [np.asarray(value) for value in values]
    except TypeError:
        raise ConfigError(f"order: expected {expected}, got {shown(values)}") from None
    if permutations and not permutations[0].ndim:
        permutations = [np.asarray(values)] * num_texts
    for permutation in permutations:
        is_integers = permutation.ndim == 1 and permutation.dtype.kind in "iu"
        require(is_integers or not permutation.size, "order", expected, values)
    expected = f"one permutation for each of {num_texts} texts"
    require(len(permutations) == num_texts, "order", expected, len(permutations))
    return [permutation.tolist() for permutation in permutations]


def least_context(config: XLNetConfig) -> int:
    """Number of tokens of its window that each target attended to at least in pre-training.

    Args:
      config: the configuration that the model was pre-trained with.
    """
    data = config.data
    if config.objective.predicts_all:
        return 0
    first_budget = round(data.num_predict * data.reuse_len / data.seq_len)
    in_first = data.reuse_len - first_budget
    in_second = data.seq_len - data.num_predict + first_budget
    return max(0, min(in_first, in_second) if first_budget else in_second)
