"""Detection of the attention patterns in figures 2 and 3 of the paper.

A pattern has a strength in [0, 1], computed from the attention weights [T, T] of a head; it counts
as present if the strength is at least `PRESENT`. The strength depends on the text; long texts give
more reliable results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import ndimage, special

PRESENT = 0.5
_PERIODS = range(2, 9)  # Candidate periods of `stride`, in tokens.
_LOCAL = 2  # Window of `local`, in tokens to either side.
_NEIGHBORHOOD_SHARE = 6  # `two_segments` reads pairs farther apart than this part of the text.
_STRIPE_SHARE = 20  # `stripes` sums over 1 / _STRIPE_SHARE of the columns.
_SMOOTHING = 5  # Side of the neighborhood that `symmetry` compares a weight with, in tokens.


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


def two_segments(weights_TT: np.ndarray) -> float:
    """Figure 2 (c): the text has two parts, and tokens attend to the part that they are in.

    For the best border in the middle half of the text, the contrast (within - across) /
    (within + across) of the mean weight within a part and across the border. The mean is taken over
    pairs with the same key, and over pairs at the same distance; the smaller contrast counts. So
    neither stripes nor patterns of the distance look like parts. Pairs in the neighborhood say
    little about parts, since few of them cross a border: they are left out, and the contrast is
    multiplied by twice the share of the weight beyond the neighborhood, at most 1.

    Args:
      weights_TT: attention weights of a head, float [T, T], rows are queries.

    Returns:
      The strength, in [0, 1].
    """
    size = len(weights_TT)
    near = max(_LOCAL, size // _NEIGHBORHOOD_SHARE)
    weights_TT = np.where(np.abs(_distance(weights_TT)) > near, weights_TT, 0.0)
    distance_TT = _distance(weights_TT) + size - 1
    key_TT = np.broadcast_to(np.arange(size), distance_TT.shape)
    best = 0.0
    for border in range(size // 4, 3 * size // 4 + 1):
        part_T = np.arange(size) >= border
        within_TT = part_T[:, None] == part_T
        by_key = _contrast(weights_TT, within_TT, key_TT)
        by_distance = _contrast(weights_TT, within_TT, distance_TT)
        best = max(best, min(by_key, by_distance))
    return float(best * min(1.0, 2 * weights_TT.sum() / size))


def symmetry(weights_TT: np.ndarray) -> float:
    """Figure 2 (d): pairs of tokens attend to each other because of their content.

    Weights beyond the neighborhood are compared with their transpose (correlation), after
    subtracting the mean weight of the distance, the median of the key and the median of the
    surrounding weights, which leaves single pairs. The correlation is multiplied by the size of
    the remainder, relative to the mean weight and at most 1.

    Args:
      weights_TT: attention weights of a head, float [T, T], rows are queries.

    Returns:
      The strength, in [0, 1].
    """
    distance = _distance(weights_TT)
    group_TT = distance + len(distance) - 1
    totals = np.bincount(group_TT.ravel(), weights_TT.ravel())
    rest_TT = weights_TT - (totals / np.bincount(group_TT.ravel()))[group_TT]
    rest_TT -= np.median(rest_TT, axis=0)
    rest_TT -= ndimage.median_filter(rest_TT, _SMOOTHING)
    left, right = rest_TT[distance > _LOCAL], rest_TT.T[distance > _LOCAL]
    if len(left) < 2 or not left.std() or not right.std():
        return 0.0
    size = min(1.0, np.sqrt(left.std() * right.std()) / weights_TT.mean())
    return float(max(0.0, np.corrcoef(left, right)[0, 1]) * size)


def self_exclusion(weights_TT: np.ndarray) -> float:
    """Figure 3 (a): tokens attend to all tokens but themselves.

    1 - (weight of the token itself) / (mean weight of the others), times the evenness of the
    others: the number of equal weights of the same entropy, e^H, counts in full from half of their
    number on.

    Args:
      weights_TT: see `stripes`.

    Returns:
      The strength, in [0, 1].
    """
    num_others = len(weights_TT) - 1
    others_TT = np.where(_distance(weights_TT) == 0, 0.0, weights_TT)
    total_T1 = others_TT.sum(axis=1, keepdims=True)
    if num_others == 0 or not total_T1.any():
        return 0.0
    share_TT = np.divide(others_TT, total_T1, out=np.zeros_like(others_TT), where=total_T1 > 0)
    evenness = np.exp(special.entr(share_TT).sum(axis=1)).mean() / num_others
    share_of_itself = np.diagonal(weights_TT).mean() / (total_T1.mean() / num_others)
    return float(max(0.0, 1 - share_of_itself) * min(1.0, 2 * evenness))


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
        if not smooth.min() > 0:  # Nothing is seen at some distances.
            continue
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
    "two segments": two_segments,
    "symmetry": symmetry,
    "self-exclusion": self_exclusion,
    "stride": stride,
    "one-sided": one_sided,
}


@dataclasses.dataclass(frozen=True)
class StrongestHead:
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


def find_patterns(weights_LNTT: np.ndarray) -> list[StrongestHead]:
    """Finds the strongest head of each pattern.

    Args:
      weights_LNTT: attention weights of all layers and heads, float [L, N, T, T].

    Returns:
      One entry per pattern in `PATTERNS`.
    """
    matches = []
    for name, strength in PATTERNS.items():
        strengths_LN = np.array([[strength(head) for head in layer] for layer in weights_LNTT])
        layer, head = np.unravel_index(strengths_LN.argmax(), strengths_LN.shape)
        match = StrongestHead(
            pattern=name,
            layer=int(layer),
            head=int(head),
            strength=float(strengths_LN.max()),
            num_heads=int((strengths_LN >= PRESENT).sum()),
        )
        matches.append(match)
    return matches


def _contrast(weights_TT: np.ndarray, within_TT: np.ndarray, group_TT: np.ndarray) -> float:
    """Contrast of the mean weight within a part and across, summed over groups with both."""
    groups = group_TT.ravel()
    num_within = np.bincount(groups, within_TT.ravel())
    num_across = np.bincount(groups, ~within_TT.ravel())
    sum_within = np.bincount(groups, (weights_TT * within_TT).ravel())
    sum_across = np.bincount(groups, (weights_TT * ~within_TT).ravel())
    has_both = (num_within > 0) & (num_across > 0)
    within = float((sum_within[has_both] / num_within[has_both]).sum())
    across = float((sum_across[has_both] / num_across[has_both]).sum())
    if within + across == 0:
        return 0.0
    return (within - across) / (within + across)


def _distance(weights_TT: np.ndarray) -> np.ndarray:
    """Distance i - j of each query and key; positive if the key is to the left."""
    place_T = np.arange(len(weights_TT))
    return place_T[:, None] - place_T
