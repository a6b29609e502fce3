"""SyntaxGym: predictions about surprisals in regions of texts, by the rules of its evaluator.

A suite has items, an item has conditions, and a condition is a text in regions. A prediction is a
formula, such as

    (2;%good%) < (2;%bad%)

which compares region 2 of two conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.errors import DataError, require_data
from official.xlnet.files.json_files import read_json
from official.xlnet.files.schema import shown
from official.xlnet.inference.score import Score

# How the surprisals of a region's tokens become one number: `meta.metric` of a suite.
METRICS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": np.sum,
    "mean": np.mean,
    "median": np.median,
    "range": np.ptp,
    "max": np.max,
    "min": np.min,
}
# Numbers are equal up to these.
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-5, 1e-3

_TOKEN = re.compile(
    r"\s*(?:\(\s*(?P<region>\d+|\*)\s*;%\s*(?P<condition>[\w-]+)\s*%\s*\)"
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"
    r"|(?P<sign>[-+<>=&|()]))"
)

Surprisals = Mapping[tuple[str, str], float]


def prediction_margin(formula: str, surprisals: Surprisals) -> float:
    """Returns the margin of a SyntaxGym prediction, positive if the prediction holds.

    From the tightest to the loosest, `+` and `-`; `<`, `>` and `=`; `&` and `|`. Operators of one
    level go from left to right. `=` has the tolerances of SyntaxGym.

    Args:
      formula: sums and differences of numbers and of surprisals `(region;%condition%)`, where the
        region `*` is the sum of all, compared once; and comparisons joined by `&` and `|`. Brackets
        are round or square.
      surprisals: {(region, condition): surprisal}.

    Returns:
      The difference of the two sides of `<` and `>`; 0.5 or -0.5 of `=`; the least one of `&`, the
      largest of `|`.

    Raises:
      DataError: the formula is another one, or has an unknown region or condition.

    Example:
      >>> prediction_margin("(2;%good%) < (2;%bad%)", {("2", "good"): 1.0, ("2", "bad"): 4.5})
      3.5
    """
    return _Formula(formula, surprisals).margin()


class _Formula:
    """A formula that is being evaluated, from left to right; see `prediction_margin`.

    Attributes:
      matches: the tokens.
      place: number of tokens that have been read.
    """

    def __init__(self, formula: str, surprisals: Surprisals):
        self.formula, self.surprisals = formula, surprisals
        self.matches: list[re.Match[str]] = []
        self.place = 0
        text = formula.replace("[", "(").replace("]", ")").rstrip()
        end = 0
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None:
                raise self._error(f"got {shown(text[end:].strip())}")
            self.matches.append(match)
            end = match.end()

    def margin(self) -> float:
        value, is_comparison = self._joined()
        if self.place < len(self.matches):
            raise self._error(f"got {shown(self.matches[self.place][0].strip())} after them")
        if not is_comparison:
            raise self._error("got a number")
        return value

    def _error(self, got: str) -> DataError:
        return DataError(
            f"prediction {self.formula!r}: expected comparisons of regions, as SyntaxGym has them, "
            f"{got}"
        )

    def _next_sign(self, signs: str) -> str:
        """Reads the next token if it is one of some signs; returns it, or an empty string."""
        if self.place < len(self.matches):
            sign = self.matches[self.place]["sign"]
            if sign and sign in signs:
                self.place += 1
                return sign
        return ""

    def _joined(self) -> tuple[float, bool]:
        """The value of comparisons joined by `&` and `|`, and whether it is a margin."""
        value, is_comparison = self._compared()
        while sign := self._next_sign("&|"):
            other, is_other_comparison = self._compared()
            if not (is_comparison and is_other_comparison):
                raise self._error(f"got numbers beside {sign}")
            value = min(value, other) if sign == "&" else max(value, other)
        return value, is_comparison

    def _compared(self) -> tuple[float, bool]:
        """The margin of a comparison, or the value of what is not compared."""
        left, is_comparison = self._summed()
        sign = self._next_sign("<>=")
        if not sign:
            return left, is_comparison
        right, is_right_comparison = self._summed()
        if is_comparison or is_right_comparison:
            raise self._error(f"got a comparison beside {sign}")
        if sign == "<":
            return right - left, True
        if sign == ">":
            return left - right, True
        is_equal = np.isclose(left, right, rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE)
        return (0.5 if is_equal else -0.5), True

    def _summed(self) -> tuple[float, bool]:
        """The value of a sum."""
        value, is_comparison = self._operand()
        while sign := self._next_sign("+-"):
            other, is_other_comparison = self._operand()
            if is_comparison or is_other_comparison:
                raise self._error(f"got a comparison beside {sign}")
            value = value + other if sign == "+" else value - other
        return value, is_comparison

    def _operand(self) -> tuple[float, bool]:
        """The value of a number, a region or what is in brackets."""
        if self._next_sign("("):
            value, is_comparison = self._joined()
            if not self._next_sign(")"):
                raise self._error("got a bracket that is not closed")
            return value, is_comparison
        sign = self._next_sign("+-")
        if self.place == len(self.matches):
            raise self._error("got its end")
        match = self.matches[self.place]
        self.place += 1
        if match["number"]:
            return float(sign + match["number"]), False
        if match["region"] and not sign:
            return self._surprisal(match["region"], match["condition"]), False
        raise self._error(f"got {shown(sign + match[0].strip())}")

    def _surprisal(self, region: str, condition: str) -> float:
        key = region.lstrip("0") or "0", condition
        if key not in self.surprisals:
            raise self._error(f"got region {region} of condition {condition!r}")
        return self.surprisals[key]


def suite_margins(
    rows: Sequence[Mapping[str, Any]],
    scores: Sequence[Score],
    formulas: Sequence[str],
    metric: str = "sum",
) -> list[dict[str, Any]]:
    """Returns a row for each prediction of each item of a SyntaxGym suite, with its `difference`.

    Args:
      rows: the conditions of the items, with the regions of their texts.
      scores: the scores of their texts; a piece belongs to the region in which it begins.
      formulas: the predictions; see `prediction_margin`.
      metric: one of `METRICS`.

    Raises:
      DataError: a region that a formula needs has no token, and the metric is not the sum.
    """
    items: dict[Any, dict[tuple[str, str], float]] = {}
    for row, score in zip(rows, scores, strict=True):
        surprisals = items.setdefault(row["item"], {})
        start_P = np.array([start for start, _ in score.offsets], int)
        values = []
        for region, (start, end) in row["regions"].items():
            is_in_P = (start_P >= start) & (start_P < end)
            values.append(_region_value(-score.log_likelihoods[is_in_P], metric))
            surprisals[region, row["condition"]] = values[-1]
        surprisals["*", row["condition"]] = -score.total if metric == "sum" else sum(values)
    margins = []
    for item, surprisals in items.items():
        for formula in formulas:
            difference = prediction_margin(formula, surprisals)
            require_data(
                not np.isnan(difference),
                f"item {item}, prediction {formula!r}",
                f"tokens in each region, for their {metric}",
                "a region without",
            )
            margins.append({"item": item, "prediction": formula, "difference": difference})
    return margins


def _region_value(surprisals_P: np.ndarray, metric: str) -> float:
    if not len(surprisals_P) and metric != "sum":
        return float("nan")
    return float(METRICS[metric](surprisals_P))


def check_predictions(
    rows: Sequence[Mapping[str, Any]], formulas: Sequence[str], metric: str
) -> list[dict[str, Any]]:
    """Raises `DataError` for a prediction that cannot be computed, before a text is scored.

    Returns the rows of `suite_margins`, with differences that have no meaning yet.

    Args:
      rows: the conditions of the items, with the regions of their texts.
      formulas: the predictions.
      metric: one of `METRICS`.
    """
    scores = []
    for row in rows:  # A token in each region that has letters.
        spans = [(start, end) for start, end in row["regions"].values() if end > start]
        scores.append(Score("", [], np.zeros(len(spans)), spans))
    return suite_margins(rows, scores, formulas, metric)


def read_suite(path: str) -> tuple[list[dict[str, Any]], list[str], str] | None:
    """Reads a SyntaxGym suite.

    Args:
      path: a table; a `.json` file may be a suite.

    Returns:
      A row for each condition of each item: `item`, `condition`, `text`, and `regions`, {region:
      span of characters}; the formulas of the predictions; and the metric. None for another file,
      or an empty suite.

    Raises:
      DataError: a prediction is not a formula, the metric is not one of `METRICS`, or the
        conditions of an item, or the regions of a condition, are not all named, or not apart.
    """
    if not path.endswith(".json"):
        return None
    try:
        suite = read_json(path)
        predictions = suite["predictions"]
        formulas = [prediction["formula"] for prediction in predictions]
        conditions = []
        for item in suite["items"]:
            conditions += [(item, condition) for condition in item["conditions"]]
    except (DataError, KeyError, TypeError):
        return None
    for prediction in predictions:
        prediction_type = prediction.get("type", "formula")
        require_data(
            prediction_type == "formula", path, "predictions of type formula", prediction_type
        )
    rows = []
    names = set()
    for item, condition in conditions:
        try:
            row = _condition_row(item, condition, path)
        except (KeyError, TypeError):
            raise DataError(
                f"{path}: expected an item_number in each item, a condition_name in each "
                "condition, and a region_number and the text content in each of its regions"
            ) from None
        name = row["item"], row["condition"]
        # Of two texts with a name, predictions would compare the last one only.
        require_data(
            name not in names,
            f"{path}, item {row['item']}",
            "each condition once",
            f"{row['condition']!r} twice",
        )
        names.add(name)
        rows.append(row)
    if not rows or not formulas:
        return None
    return rows, formulas, _metric(suite, path)


def _metric(suite: Mapping[str, Any], path: str) -> str:
    """The metric of a suite; the sum if it names none."""
    metric = (suite.get("meta") or {}).get("metric", "sum")
    if isinstance(metric, list) and len(metric) == 1:
        metric = metric[0]
    is_known = isinstance(metric, str) and metric in METRICS
    require_data(is_known, f"{path}, meta.metric", f"one of {', '.join(METRICS)}", shown(metric))
    return metric


def _condition_row(item: Mapping[str, Any], condition: Mapping[str, Any], path: str) -> Any:
    """The row of a condition of an item."""
    text, regions = _joined_regions(condition["regions"])
    row = {
        "item": item["item_number"],
        "condition": condition["condition_name"],
        "text": text,
        "regions": regions,
    }
    where = f"{path}, item {row['item']}, condition {row['condition']!r}"
    numbers = [region["region_number"] for region in condition["regions"]]
    require_data(len(regions) == len(numbers), where, "each region_number once", numbers)
    return row


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
