"""Metrics of pairs of texts, where one should be more probable, and of norms; also by group."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from official.xlnet.projects.any_order.pairs.bootstrap import interval


def pair_metrics(
    differences: Sequence[float],
    groups: Sequence[Any] = (),
    seed: int = 0,
    clusters: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """Returns accuracy and mean difference of pairs of good and bad texts.

    Args:
      differences: log-likelihood of the good text minus the bad text's, in nats.
      groups: the group of each pair, if they are to be told apart.
      seed: of the bootstrap, which draws pairs, or clusters of them.
      clusters: for each kind of cluster, such as a noun, the cluster of each pair, if pairs are not
        independent; see `bootstrap`.

    Returns:
      `pairs`; `accuracy`, the share of positive differences, and `mean_difference`, each with its
      95% interval; `clusters`, the number of each kind, if there are any; and `groups`, the same
      for each group.

    Example:
      >>> pair_metrics([1.5, 0.5, -0.25, 2.0])["accuracy"]
      0.75
    """
    values = np.asarray(differences, float)
    columns = np.column_stack([values > 0, values])

    def means(counts: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return counts @ columns / counts.sum(axis=1, keepdims=True)

    of_accuracy, of_mean = interval(means, len(values), clusters, seed)
    metrics: dict[str, Any] = {
        "pairs": len(values),
        "accuracy": float((values > 0).mean()),
        "accuracy_interval": np.clip(of_accuracy, 0, 1).tolist(),
        "mean_difference": float(values.mean()),
        "mean_difference_interval": of_mean.tolist(),
    }
    if clusters:
        metrics["clusters"] = [len({str(name) for name in kind}) for kind in clusters]
    if len(groups):
        metrics["groups"] = {}
        for name, rows in _rows_of(groups).items():
            parts = _parts(clusters, rows)
            metrics["groups"][name] = pair_metrics(values[rows], seed=seed, clusters=parts)
    return metrics


def norm_correlations(
    log_likelihoods: Sequence[float],
    norms: Sequence[float],
    groups: Sequence[Any] = (),
    seed: int = 0,
    clusters: Sequence[Sequence[Any]] = (),
) -> dict[str, Any]:
    """Returns how log-likelihoods correlate with norms, such as cloze probabilities.

    Args:
      log_likelihoods: of the texts.
      norms: a number for each text.
      groups: the group of each text, if they are to be told apart.
      seed: of the bootstrap, which draws clusters.
      clusters: for each kind of cluster, such as a sentence frame, the cluster of each text; see
        `bootstrap`.

    Returns:
      `texts`, `pearson` and `spearman`, which are NaN where either side is constant; with clusters,
      the 95% interval of each, and `clusters`, the number of each kind; and `groups`, the same for
      each group.

    Example:
      >>> norm_correlations([-9.0, -4.0, -1.0], [0.0, 0.1, 0.7])["spearman"]
      1.0
    """
    import pandas as pd

    frame = pd.DataFrame({"log_likelihood": log_likelihoods, "norm": norms}, dtype=float)
    metrics: dict[str, Any] = {"texts": len(frame)}
    metrics |= {method: float(frame.corr(method).iloc[0, 1]) for method in ("pearson", "spearman")}
    if clusters:
        columns = frame.to_numpy()
        statistic = functools.partial(correlations, *columns.T)
        intervals = np.clip(interval(statistic, len(frame), clusters, seed), -1, 1).tolist()
        metrics["pearson_interval"], metrics["spearman_interval"] = intervals
        metrics["clusters"] = [len({str(name) for name in kind}) for kind in clusters]
    if len(groups):
        metrics["groups"] = {}
        for name, rows in _rows_of(groups).items():
            part = frame.iloc[rows]
            metrics["groups"][name] = norm_correlations(
                part["log_likelihood"],
                part["norm"],
                seed=seed,
                clusters=_parts(clusters, rows),
            )
    return metrics


def _rows_of(groups: Sequence[Any]) -> dict[str, np.ndarray]:
    """The rows of each group, by name."""
    names = np.array([str(group) for group in groups])
    return {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}


def _parts(clusters: Sequence[Sequence[Any]], rows: np.ndarray) -> list[list[Any]]:
    """The clusters of some rows."""
    return [[kind[row] for row in rows] for kind in clusters]


def correlations(first_N: np.ndarray, second_N: np.ndarray, counts_RN: np.ndarray) -> np.ndarray:
    """Pearson's and Spearman's correlation in resamples, float64 [resamples, 2]; NaN if undefined.

    Args:
      first_N: float64 [rows].
      second_N: float64 [rows].
      counts_RN: int [resamples, rows], how often each row counts.
    """
    ranks = _ranks(first_N, counts_RN), _ranks(second_N, counts_RN)
    pearson_R = _pearson(first_N[None], second_N[None], counts_RN)
    return np.stack([pearson_R, _pearson(*ranks, counts_RN)], axis=1)


def _ranks(values_N: np.ndarray, counts_RN: np.ndarray) -> np.ndarray:
    """Mean rank of each value among the rows that count, float64 [resamples, rows]."""
    unique, code_N = np.unique(values_N, return_inverse=True)
    counts_RU = np.zeros([len(counts_RN), len(unique)], int)
    np.add.at(counts_RU.T, code_N, counts_RN.T)
    ranks_RU = counts_RU.cumsum(axis=1) - (counts_RU - 1) / 2
    return ranks_RU[:, code_N]


def _pearson(first_RN: np.ndarray, second_RN: np.ndarray, counts_RN: np.ndarray) -> np.ndarray:
    """Pearson's correlation of rows that count several times, float64 [resamples]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        total_R1 = counts_RN.sum(axis=1, keepdims=True)
        x_RN = first_RN - (counts_RN * first_RN).sum(axis=1, keepdims=True) / total_R1
        y_RN = second_RN - (counts_RN * second_RN).sum(axis=1, keepdims=True) / total_R1
        variances_R = (counts_RN * x_RN**2).sum(axis=1) * (counts_RN * y_RN**2).sum(axis=1)
        return (counts_RN * x_RN * y_RN).sum(axis=1) / np.sqrt(variances_R)
