"""Detection of the attention patterns in figures 2 and 3 of the paper.

A pattern has a strength in [0, 1], computed from the attention weights [T, T] of a head; it counts
as present if the strength is at least `PRESENT`. The strength depends on the text; long texts give
more reliable results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

PRESENT = 0.5
_PERIODS = range(2, 9)  # Candidate periods of `stride`, in tokens.
_LOCAL = 2  # Window of `local`, in tokens to either side.
_STRIPE_SHARE = 20  # `stripes` sums over 1 / _STRIPE_SHARE of the columns.
_MIN_NEIGHBOR_SHARE = 0.5  # Of the uniform attention weight; see `self_exclusion`.


def stripes(weights_TT: np.ndarray) -> float:
    """Figure 2 (a): all tokens attend to the same few tokens.

    Fraction of the attention weight on the top twentieth of the keys.

    Args:
      weights_TT: attention weights of a head, float [T, T], rows are queries.

    Returns:
      The strength, in [0, 1].
    """
    columns_T = np.sort(weights_TT.mean(axis=0))[::-1]
    return float(columns_T[: max(1, len(columns_T) // _STRIPE_SHARE)].sum())


def local(weights_TT: np.ndarray) -> float:
    """Figure 2 (b): tokens attend to their neighborhood.

    Fraction of the attention weight within two tokens to either side.

    Args:
      weights_TT: see `stripes`.

    Returns:
      The strength, in [0, 1].
    """
    return float(weights_TT[np.abs(_distance(weights_TT)) <= _LOCAL].sum() / len(weights_TT))


def self_exclusion(weights_TT: np.ndarray) -> float:
    """Figure 3 (a): tokens attend to all tokens but themselves.

    1 - (mean weight of the token itself) / (mean weight of its neighbors); 0 if the neighbors get
    less than half of the uniform weight.

    Args:
      weights_TT: see `stripes`.

    Returns:
      The strength, in [0, 1].
    """
    distance = _distance(weights_TT)
    own = weights_TT[distance == 0].mean()
    beside = weights_TT[np.abs(distance) == 1].mean()
    return (
        float(max(0.0, 1 - own / beside))
        if beside * len(weights_TT) >= _MIN_NEIGHBOR_SHARE
        else 0.0
    )


def stride(weights_TT: np.ndarray) -> float:
    """Figure 3 (b): tokens attend to every n-th token, relative to themselves.

    The mean weight at each distance is normalized by its moving average over n distances. The
    strength is the adjusted R² of predicting the result from the distance modulo n, times twice
    its amplitude (at most 1), for the best n from 2 to 8.

    Args:
      weights_TT: see `stripes`.

    Returns:
      The strength, in [0, 1].
    """
    distance = np.abs(_distance(weights_TT))
    profile = np.array([weights_TT[distance == d].mean() for d in range(2, len(distance) // 2)])
    best = 0.0
    for period in _PERIODS:
        if len(profile) < 3 * period:
            break
        smooth = np.convolve(profile, np.ones(period) / period, mode="valid")
        start = (period - 1) // 2
        wave = profile[start : start + len(smooth)] / smooth
        wave -= wave.mean()
        phases = np.array([wave[phase::period].mean() for phase in range(period)])
        explained = np.tile(phases, len(wave) // period + 1)[: len(wave)]
        rest, total = np.square(wave - explained).sum(), np.square(wave).sum()
        if total > 0:
            share = 1 - rest / total * (len(wave) - 1) / (len(wave) - period)
            best = max(best, float(share * min(1.0, 2 * explained.std())))
    return best


def one_sided(weights_TT: np.ndarray) -> float:
    """Figure 3 (c): tokens attend to one side only.

    |left - right| / (left + right) of the attention weight on other tokens, over queries in the
    middle half of the text.

    Args:
      weights_TT: see `stripes`.

    Returns:
      The strength, in [0, 1].
    """
    distance = _distance(weights_TT)
    middle = slice(len(weights_TT) // 4, max(1, 3 * len(weights_TT) // 4))
    left = np.where(distance > 0, weights_TT, 0.0)[middle].sum()
    right = np.where(distance < 0, weights_TT, 0.0)[middle].sum()
    return float(abs(left - right) / (left + right)) if left + right > 0 else 0.0


PATTERNS: dict[str, Callable[[np.ndarray], float]] = {
    "stripes": stripes,
    "local": local,
    "self-exclusion": self_exclusion,
    "stride": stride,
    "one-sided": one_sided,
}


@dataclasses.dataclass(frozen=True)
class Found:
    """The head with the highest strength of a pattern.

    Attributes:
      pattern: name of the pattern.
      layer: index of the layer.
      head: index of the head.
      strength: strength of the pattern in this head, in [0, 1].
      num_heads: number of heads in which the pattern is present.
    """

    pattern: str
    layer: int
    head: int
    strength: float
    num_heads: int


def find_patterns(weights_LNTT: np.ndarray) -> list[Found]:
    """Finds the strongest head of each pattern.

    Args:
      weights_LNTT: attention weights of all layers and heads, float [L, N, T, T].

    Returns:
      One entry per pattern in `PATTERNS`.
    """
    found = []
    for name, strength in PATTERNS.items():
        strengths_LN = np.array([[strength(head) for head in layer] for layer in weights_LNTT])
        layer, head = np.unravel_index(strengths_LN.argmax(), strengths_LN.shape)
        number = int((strengths_LN >= PRESENT).sum())
        found.append(Found(name, int(layer), int(head), float(strengths_LN.max()), number))
    return found


def _distance(weights_TT: np.ndarray) -> np.ndarray:
    """Distance i - j of each query and key; positive if the key is to the left."""
    place_T = np.arange(len(weights_TT))
    return place_T[:, None] - place_T
