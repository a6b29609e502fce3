"""Labels that are numbers: their mean and scale, metrics, a plot, and means of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import require_data

_FLOAT32_RESOLUTION = 1e-5  # With two digits more than float32 has, for errors of a percent.
_LEAST_SCALE = 1e-18  # Its square is a normal number of float32.


def target_of(labels: Sequence[float], where: str) -> tuple[float, float]:
    """Returns mean and standard deviation of the labels of a regression.

    Args:
      labels: the training labels.
      where: names the data in the error.

    Raises:
      DataError: the labels are the same, or differ by less than float32 resolves.

    Example:
      >>> target_of([1150.0, 3300.0], "training data")
      (2225.0, 1075.0)
    """
    values = np.array(labels, np.float64)
    require_data(np.ptp(values) != 0, where, "at least two different labels", "one")
    mean, scale = float(np.mean(values)), float(np.std(values))
    least = max(_FLOAT32_RESOLUTION * abs(mean), _LEAST_SCALE)
    require_data(
        scale >= least,
        where,
        f"labels whose standard deviation is at least {least:.1g}, as they are about {mean:g} "
        "and computed in float32",
        f"{scale:.1g}; subtract a constant from the labels, or multiply them by one",
    )
    return mean, scale


def complete_target(config: XLNetConfig, labels: Sequence[float]) -> None:
    """Sets `task.target_means` and `task.target_scales`, unless set; see `target_of`."""
    mean, scale = target_of(labels, "training data")
    task = cast(Any, config.task)
    if not task.target_means:
        task.target_means, task.target_scales = (mean,), (scale,)


def mean_score(predictions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combines the predictions of several models that have a `score`.

    Example:
      >>> mean_score([{"id": "1", "score": 1.0}, {"id": "1", "score": 2.0}])
      {'id': '1', 'score': 1.5}
    """
    mean_score = float(np.mean([prediction["score"] for prediction in predictions]))
    return predictions[0] | {"score": mean_score}


def number_metrics(
    labels: Sequence[float], predictions: Sequence[float]
) -> dict[str, float | None]:
    """Returns the metrics of predicted numbers; None where labels or predictions are all equal.

    Args:
      labels: the labels.
      predictions: as many predictions.
    """
    from scipy import stats

    true, predicted = np.array(labels, np.float64), np.array(predictions, np.float64)
    varied = np.ptp(true) > 0 and np.ptp(predicted) > 0
    squared_error, variance = float(np.mean(np.square(true - predicted))), float(np.var(true))
    return {
        "pearson": float(stats.pearsonr(true, predicted)[0]) if varied else None,
        "spearman": float(stats.spearmanr(true, predicted)[0]) if varied else None,
        "r2": 1 - squared_error / variance if variance else None,
        "mean_squared_error": squared_error,
        "root_mean_squared_error": float(np.sqrt(squared_error)),
        "mean_absolute_error": float(np.mean(np.abs(true - predicted))),
    }


def draw_numbers(axes, true: Sequence[float], predicted: Sequence[float]) -> None:
    """Plots predictions against labels."""
    axes.scatter(true, predicted, s=8, alpha=0.5)
    axes.set(xlabel="label", ylabel="prediction", title="Predictions")
