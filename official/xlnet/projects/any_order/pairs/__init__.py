"""Metrics of pairs of texts, where one should be more probable, and of norms; also by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_RESAMPLES = 2000
_PERCENTILES = (2.5, 97.5)


def pair_metrics(
    differences: Sequence[float], groups: Sequence[Any] = (), seed: int = 0
) -> dict[str, Any]:
    """Returns accuracy and mean difference of pairs of good and bad texts.

    Args:
      differences: log-likelihood of the good text minus the bad text's, in nats.
      groups: the group of each pair, if they are to be told apart.
      seed: of the bootstrap, which draws pairs.

    Returns:
      `pairs`; `accuracy`, the share of positive differences, and `mean_difference`, each with its
      95% interval; and `groups`, the same for each group.

    Example:
      >>> pair_metrics([1.5, 0.5, -0.25, 2.0])["accuracy"]
      0.75
    """
    values, random = np.asarray(differences, float), np.random.default_rng(seed)
    drawn = (values[random.integers(len(values), size=len(values))] for _ in range(_RESAMPLES))
    shares, means = np.transpose([((sample > 0).mean(), sample.mean()) for sample in drawn])
    metrics: dict[str, Any] = {
        "pairs": len(values),
        "accuracy": float((values > 0).mean()),
        "accuracy_interval": np.percentile(shares, _PERCENTILES).tolist(),
        "mean_difference": float(values.mean()),
        "mean_difference_interval": np.percentile(means, _PERCENTILES).tolist(),
    }
    if len(groups):
        names = np.array([str(group) for group in groups])
        metrics["groups"] = {
            name: pair_metrics(values[names == name], seed=seed)
            for name in np.unique(names).tolist()
        }
    return metrics


def norm_correlations(
    log_likelihoods: Sequence[float], norms: Sequence[float], groups: Sequence[Any] = ()
) -> dict[str, Any]:
    """Returns how log-likelihoods correlate with norms, such as cloze probabilities.

    Args:
      log_likelihoods: of the texts.
      norms: a number for each text.
      groups: the group of each text, if they are to be told apart.

    Returns:
      `texts`, `pearson` and `spearman`, which are NaN where either side is constant; and `groups`,
      the same for each group.

    Example:
      >>> norm_correlations([-9.0, -4.0, -1.0], [0.0, 0.1, 0.7])["spearman"]
      1.0
    """
    import pandas as pd

    frame = pd.DataFrame({"log_likelihood": log_likelihoods, "norm": norms}, dtype=float)
    metrics: dict[str, Any] = {"texts": len(frame)}
    metrics |= {method: float(frame.corr(method).iloc[0, 1]) for method in ("pearson", "spearman")}
    if len(groups):
        metrics["groups"] = {
            name: norm_correlations(part["log_likelihood"], part["norm"])
            for name, part in frame.groupby([str(group) for group in groups])
        }
    return metrics
