"""Which heads show the patterns that figures 2 and 3 of the paper point at.

A pattern's strength is a number from 0 to 1 of one head's weights [T, T]; from `PRESENT` on the
pattern counts as present. Strengths are of the text at hand: a pattern is seen more surely in a
long one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

PRESENT = 0.5
_PERIODS = range(2, 9)
_LOCAL = 2  # tokens to either side


def stripes(weights_TT: np.ndarray) -> float:
    """Figure 2 (a): all tokens look at the same few. Share of a twentieth of the columns."""
    columns_T = np.sort(weights_TT.mean(axis=0))[::-1]
    return float(columns_T[: max(1, len(columns_T) // 20)].sum())


def local(weights_TT: np.ndarray) -> float:
    """Figure 2 (b): tokens look around themselves. Share within two tokens to either side."""
    return float(weights_TT[np.abs(_distance(weights_TT)) <= _LOCAL].sum() / len(weights_TT))


def self_exclusion(weights_TT: np.ndarray) -> float:
    """Figure 3 (a): a token looks at all but itself. 1 - (own share) / (share of its neighbours).

    0 where its neighbours get less than they would if all tokens were looked at alike.
    """
    distance = _distance(weights_TT)
    own = weights_TT[distance == 0].mean()
    beside = weights_TT[np.abs(distance) == 1].mean()
    return float(max(0.0, 1 - own / beside)) if beside * len(weights_TT) >= 0.5 else 0.0


def stride(weights_TT: np.ndarray) -> float:
    """Figure 3 (b): a token looks at every n-th token, counted from itself.

    The mean weight of each distance is divided by its running mean over n distances. What share
    of these waves the distance modulo n explains (adjusted R²), for the best n from 2 to 8, times
    twice their size (at most 1).
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
    """Figure 3 (c): a token looks to one side only. 0 for both sides alike, 1 for one only.

    Of the share that goes to other tokens, by rows in the middle half of the text.
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
    """The head of a model that shows a pattern most.

    Attributes:
      pattern: name of the pattern.
      layer: number of the layer.
      head: number of the head.
      strength: see the module's text.
      num_heads: how many heads show it.
    """

    pattern: str
    layer: int
    head: int
    strength: float
    num_heads: int


def find_patterns(weights_LNTT: np.ndarray) -> list[Found]:
    """The strongest head of every pattern, and how many heads have it."""
    found = []
    for name, strength in PATTERNS.items():
        strengths_LN = np.array([[strength(head) for head in layer] for layer in weights_LNTT])
        layer, head = np.unravel_index(strengths_LN.argmax(), strengths_LN.shape)
        number = int((strengths_LN >= PRESENT).sum())
        found.append(Found(name, int(layer), int(head), float(strengths_LN.max()), number))
    return found


def _distance(weights_TT: np.ndarray) -> np.ndarray:
    """Distance i - j of every pair, positive to the left."""
    place_T = np.arange(len(weights_TT))
    return place_T[:, None] - place_T
