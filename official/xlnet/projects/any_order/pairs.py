"""Metrics of pairs of texts, where one should be more probable, and of norms; also by group."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.errors import DataError
from official.xlnet.files.json_files import read_json
from official.xlnet.inference.score import Score

_RESAMPLES = 2000
_PERCENTILES = (2.5, 97.5)
_REGION = re.compile(r"\(\s*(\d+|\*)\s*;\s*%([^%]+)%\s*\)")


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


def prediction_margin(formula: str, surprisals: Mapping[tuple[str, str], float]) -> float:
    """Returns the margin of a SyntaxGym prediction, positive if the prediction holds.

    Args:
      formula: sums and differences of surprisals `(region;%condition%)`, region `*` for all, that
        are compared by `<`, `>` or `=`, and comparisons in brackets joined by `&` and `|`.
      surprisals: {(region, condition): surprisal}.

    Returns:
      The difference of the two sides of a comparison; the least one of `&`, the largest of `|`.

    Raises:
      DataError: the formula is another one, or has an unknown region or condition.

    Example:
      >>> prediction_margin("(2;%good%) < (2;%bad%)", {("2", "good"): 1.0, ("2", "bad"): 4.5})
      3.5
    """

    def surprisal(match: re.Match) -> str:
        return f"({surprisals[match[1], match[2]]!r})"

    try:
        numbers = _REGION.sub(surprisal, formula.replace("[", "(").replace("]", ")"))
        for sign, word in ((r"=+", "=="), ("&+", " and "), (r"\|+", " or ")):
            numbers = re.sub(sign, word, numbers)
        return _value(ast.parse(numbers.strip(), mode="eval").body)
    except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
        raise DataError(
            f"prediction {formula!r}: expected comparisons of regions ({error})"
        ) from None


def suite_margins(
    rows: Sequence[Mapping[str, Any]], scores: Sequence[Score], formulas: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns a row for each prediction of each item of a SyntaxGym suite, with its `difference`.

    Args:
      rows: the conditions of the items, with the regions of their texts.
      scores: the scores of their texts; a piece belongs to the region in which it begins.
      formulas: the predictions; see `prediction_margin`.
    """
    items: dict[Any, dict[tuple[str, str], float]] = {}
    for row, score in zip(rows, scores, strict=True):
        surprisals = items.setdefault(row["item"], {})
        surprisals["*", row["condition"]] = -score.total
        start_P = np.array([start for start, _ in score.offsets], int)
        for region, (start, end) in row["regions"].items():
            is_in_P = (start_P >= start) & (start_P < end)
            surprisals[region, row["condition"]] = -float(score.log_likelihoods[is_in_P].sum())
    return [
        {"item": item, "prediction": formula, "difference": prediction_margin(formula, surprisals)}
        for item, surprisals in items.items()
        for formula in formulas
    ]


def read_suite(path: str) -> tuple[list[dict[str, Any]], list[str]] | None:
    """Reads a SyntaxGym suite.

    Args:
      path: a table; a `.json` file may be a suite.

    Returns:
      A row for each condition of each item: `item`, `condition`, `text`, and `regions`, {region:
      span of characters}; and the formulas of the predictions. None for another file, or an empty
      suite.
    """
    if not path.endswith(".json"):
        return None
    try:
        suite = read_json(path)
        formulas = [prediction["formula"] for prediction in suite["predictions"]]
        conditions = []
        for item in suite["items"]:
            conditions += [(item, condition) for condition in item["conditions"]]
    except (DataError, KeyError, TypeError):
        return None
    rows = []
    for item, condition in conditions:
        text, regions = _joined_regions(condition["regions"])
        rows.append(
            {
                "item": item["item_number"],
                "condition": condition["condition_name"],
                "text": text,
                "regions": regions,
            }
        )
    return (rows, formulas) if rows and formulas else None


def _joined_regions(
    regions: Sequence[Mapping[str, Any]],
) -> tuple[str, dict[str, tuple[int, int]]]:
    """The text of some regions, and the span of characters of each of them."""
    text = ""
    spans = {}
    for region in regions:
        content = region["content"]
        if text and content:
            text += " "
        text += content
        spans[str(region["region_number"])] = len(text) - len(content), len(text)
    return text, spans


_OPERATIONS: dict[type, Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.USub: operator.neg,
    ast.Gt: operator.sub,
    ast.Lt: lambda left, right: right - left,
    ast.Eq: lambda left, right: float(left == right) - 0.5,
    ast.And: lambda *sides: min(sides),
    ast.Or: lambda *sides: max(sides),
}


def _value(node: Any) -> float:
    """Value of a sum, margin of a comparison."""
    if isinstance(node, ast.Constant):
        return float(node.value)  # type: ignore[arg-type]
    (operation,) = node.ops if isinstance(node, ast.Compare) else [node.op]
    sides = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return _OPERATIONS[type(operation)](*map(_value, sides))
