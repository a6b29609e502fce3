"""What surprisal adds to a linear regression: the gain in log-likelihood of psycholinguistics.

Reading times or ratings y are predicted from other numbers about a text (length, frequency, …) with
and without its surprisal. The gain is the mean difference of the log-likelihoods of rows that
neither regression was fitted to (Goodkind and Bicknell, 2018; Wilcox et al., 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.validation import require
from official.xlnet.projects.any_order.pairs.bootstrap import interval

NUM_FOLDS = 10


def log_likelihood_gain(
    values: np.ndarray,
    surprisals: np.ndarray,
    baseline: np.ndarray,
    clusters: Sequence[Sequence[Any]] = (),
    seed: int = 0,
) -> dict[str, Any]:
    """Returns the gain in log-likelihood over a baseline regression, in nats per row.

    Args:
      values: float64 [N], what is predicted.
      surprisals: float64 [N].
      baseline: float64 [N, predictors], the predictors of both regressions, without the constant.
      clusters: for each kind of cluster, the cluster of each row; the rows of a cluster of the
        first kind are left out together. Default: each row is one.
      seed: random seed of the folds and of the bootstrap.

    Returns:
      `log_likelihood_gain`, the mean over rows that are left out; `log_likelihood_gain_interval`,
      its 95% interval over clusters; `coefficient` of surprisal in the regression of all rows.

    Raises:
      ConfigError: there are too few clusters or rows to leave some out.

    Example:
      >>> log_likelihood_gain(times, surprisals, lengths[:, None])["log_likelihood_gain"]
      0.021
    """
    without = np.column_stack([np.ones(len(values)), baseline])
    with_surprisal = np.column_stack([without, surprisals])
    folds = _folds(clusters[0] if clusters else range(len(values)), seed)
    gains = np.full(len(values), np.nan)
    for fold in np.unique(folds):
        is_left_out = folds == fold
        num_left = int((~is_left_out).sum())
        num_columns = with_surprisal.shape[1]
        expected = f"more than {num_columns} rows beside those of each fold, for as many predictors"
        require(num_left > num_columns, "baseline", expected, num_left)
        gains[is_left_out] = _held_out(values, with_surprisal, is_left_out)
        gains[is_left_out] -= _held_out(values, without, is_left_out)

    def mean(counts: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return (counts @ gains / counts.sum(axis=1))[:, None]

    [bounds] = interval(mean, len(values), clusters, seed)
    return {
        "log_likelihood_gain": float(gains.mean()),
        "log_likelihood_gain_interval": bounds.tolist(),
        "coefficient": float(np.linalg.lstsq(with_surprisal, values, rcond=None)[0][-1]),
    }


def _folds(clusters: Sequence[Any], seed: int) -> np.ndarray:
    """Fold of each row, int [N]; clusters are dealt to folds at random."""
    _, code = np.unique([str(name) for name in clusters], return_inverse=True)
    num_clusters = int(code.max()) + 1
    require(num_clusters >= 2, "cluster", "at least 2 different values", num_clusters)
    dealt = np.random.default_rng(seed).permutation(num_clusters) % min(NUM_FOLDS, num_clusters)
    return dealt[code]


def _held_out(values: np.ndarray, predictors: np.ndarray, is_left_out: np.ndarray) -> np.ndarray:
    """Log-likelihoods of the rows that are left out, under a regression of the others."""
    kept = ~is_left_out
    weights, *_ = np.linalg.lstsq(predictors[kept], values[kept], rcond=None)
    variance = np.mean((values[kept] - predictors[kept] @ weights) ** 2)
    errors = values[is_left_out] - predictors[is_left_out] @ weights
    return -(np.log(2 * np.pi * variance) + errors**2 / variance) / 2
