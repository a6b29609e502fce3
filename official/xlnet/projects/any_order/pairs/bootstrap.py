"""Intervals of statistics of rows that are not independent: bootstrap of clusters.

Rows with a noun, a speaker or a text in common have errors in common. The bootstrap draws clusters
with replacement, and a row counts as often as its cluster is drawn. With several kinds of clusters
that cross, such as subjects and items, each kind is drawn, and a row counts as often as the product
says (the pigeonhole bootstrap; Owen, 2007). Intervals are then conservative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

_RESAMPLES = 2000
_PERCENTILES = (2.5, 97.5)
_COUNTS_PER_CHUNK = 1_000_000  # Rows times resamples: bounds the memory.

# Values [resamples, statistics] of the rows that count as often as counts [resamples, rows] say.
Statistic = Callable[[np.ndarray], np.ndarray]


def interval(
    statistic: Statistic, num_rows: int, clusters: Sequence[Sequence[Any]] = (), seed: int = 0
) -> np.ndarray:
    """Returns 95% intervals of some statistics, float64 [statistics, 2].

    Without clusters, rows are drawn, and the interval is of percentiles. With clusters, of which
    there are often few, it is Student's, with the standard deviation over resamples.

    Args:
      statistic: function of counts [resamples, rows] to values [resamples, statistics]; values that
        are not finite are left out.
      num_rows: number of rows.
      clusters: for each kind of cluster, the cluster of each row.
      seed: random seed.
    """
    codes = [np.unique([str(name) for name in kind], return_inverse=True)[1] for kind in clusters]
    drawn = np.concatenate([statistic(counts) for counts in _counts(codes, num_rows, seed)])
    drawn[~np.isfinite(drawn)] = np.nan
    if not codes:
        return np.nanpercentile(drawn, _PERCENTILES, axis=0).T
    from scipy import stats

    fewest = min(int(code.max()) + 1 for code in codes)
    if fewest < 2:
        return np.full([drawn.shape[1], 2], np.nan)
    # A sample of G clusters is by (G - 1) / G too narrow.
    deviation = np.nanstd(drawn, axis=0) * np.sqrt(fewest / (fewest - 1))
    half = stats.t.ppf(0.975, fewest - 1) * deviation
    value = statistic(np.ones([1, num_rows]))[0]
    return np.stack([value - half, value + half], axis=1)


def _counts(codes: Sequence[np.ndarray], num_rows: int, seed: int) -> Iterator[np.ndarray]:
    """How often each row counts in each resample, int [resamples, rows], in chunks."""
    random = np.random.default_rng(seed)
    kinds = list(codes) or [np.arange(num_rows)]
    done = 0
    while done < _RESAMPLES:
        size = min(_RESAMPLES - done, max(1, _COUNTS_PER_CHUNK // num_rows))
        counts = np.ones([size, num_rows], int)
        for code in kinds:
            num_clusters = int(code.max()) + 1
            drawn = random.integers(num_clusters, size=[size, num_clusters])
            of_clusters = np.zeros([size, num_clusters], int)
            np.add.at(of_clusters, (np.arange(size)[:, None], drawn), 1)
            counts *= of_clusters[:, code]
        yield counts
        done += size
