"""Means, their intervals, and verdicts on differences: Student's t test, with Holm's correction.

In tables, ± is half the width of Student's 95% interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats


class Difference(NamedTuple):
    """A mean difference, positive if the first of the two is better.

    Attributes:
      mean: the mean.
      error: its standard error.
      degrees: degrees of freedom of the error; 0 if there is only one run, whose error is unknown.
    """

    mean: float
    error: float
    degrees: float


def difference(mean: float, *sources: tuple[float, int]) -> Difference:
    """Adds up independent sources of error (Welch and Satterthwaite).

    Args:
      mean: the mean difference.
      *sources: variance of the mean due to each source, and its degrees of freedom.

    Example:
      >>> difference(1.0, (0.02, 2), (0.02, 2)).degrees
      4.0
    """
    variances, degrees = np.array(sources, float).T
    total = variances.sum() if degrees.all() else 0.0
    number = total**2 / (variances**2 / degrees).sum() if total else 0.0
    return Difference(float(mean), float(np.sqrt(total)), float(number))


def over_runs(values: Sequence[float] | np.ndarray) -> tuple[float, int]:
    """Variance of a mean over independent runs, and its degrees of freedom."""
    degrees = len(values) - 1
    return (float(np.var(values, ddof=1)) / len(values) if degrees else 0.0), degrees


def over_texts(sums: np.ndarray, sizes: np.ndarray) -> tuple[float, int]:
    """Variance of a difference of two ratios due to the texts, and its degrees of freedom.

    A ratio is the sum over the texts, such as nats, by the sum of their sizes, such as tokens.

    Args:
      sums: float64 [seeds, 2, texts], of each text in each of two rows.
      sizes: float64 [texts] or [seeds, texts].
    """
    difference_ST = sums[:, 1] - sums[:, 0]
    sizes_ST = np.broadcast_to(sizes, difference_ST.shape)
    ratio_S1 = (difference_ST.sum(axis=1) / sizes_ST.sum(axis=1))[:, None]
    error_ST = (difference_ST - sizes_ST * ratio_S1) / sizes_ST.mean(axis=1)[:, None]
    return over_runs(error_ST.mean(axis=0))


def half_interval(values: Sequence[float]) -> float:
    """Half the width of Student's 95% interval of a mean over runs; NaN for one run."""
    variance, degrees = over_runs(values)
    return float(stats.t.ppf(0.975, degrees) * np.sqrt(variance))


def mean_and_interval(values: Sequence[float], digits: int = 3) -> str:
    """Mean over runs, and half the width of its interval if there are several.

    Values that are not numbers are left out; without any, the cell is empty.
    """
    numbers = [value for value in values if not np.isnan(value)]
    if not numbers:
        return ""
    spread = f" ± {half_interval(numbers):.{digits}f}" if len(numbers) > 1 else ""
    return f"{np.mean(numbers):.{digits}f}{spread}"


def with_verdicts(differences: Sequence[Difference | None], digits: int = 3) -> list[str]:
    """Cells of a table: mean, half its interval and verdict; empty where there is no difference.

    The interval is of one cell, and the verdict of the table: the probability of any false verdict
    in it is 5%. So an interval without 0 may be no verdict.
    """
    tested = [d for d in differences if d and d.degrees]
    p = np.array([2 * stats.t.sf(abs(d.mean) / d.error, d.degrees) for d in tested])
    order = np.argsort(p)
    is_real = np.zeros(len(p), bool)
    is_real[order] = np.logical_and.accumulate(p[order] * np.arange(len(p), 0, -1) < 0.05)
    words = {
        d: ("ahead" if d.mean > 0 else "behind") if real else "no difference"
        for d, real in zip(tested, is_real, strict=True)
    }
    return [
        f"{d.mean:+.{digits}f} ± {_half_of(d):.{digits}f}, {words[d]}"
        if d in words
        else (f"{d.mean:+.{digits}f}, one run" if d else "")
        for d in differences
    ]


def _half_of(found: Difference) -> float:
    """Half the width of the interval of a difference."""
    return float(stats.t.ppf(0.975, found.degrees)) * found.error
