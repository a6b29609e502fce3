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
from official.xlnet.files.schema import conform, shown
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
      DataError: a value is missing or of another type, a prediction is not a formula, the metric
        is not one of `METRICS`, or two conditions of an item, or regions of a condition, have one
        name.
    """
    if not path.endswith(".json"):
        return None
    try:
        suite = read_json(path)
    except DataError:
        return None  # The reader of tables says what is wrong.
    if not isinstance(suite, dict) or not {"predictions", "items"} <= suite.keys():
        return None
    formulas = []
    for index, prediction in enumerate(_objects(suite, "predictions", path)):
        where = f"{path}: predictions[{index}]"
        formulas.append(_value(prediction, "formula", str, where))
        prediction_type = prediction.get("type", "formula")
        require_data(
            prediction_type == "formula", path, "predictions of type formula", prediction_type
        )
    rows = []
    names = set()
    for index, item in enumerate(_objects(suite, "items", path)):
        where = f"{path}: items[{index}]"
        for number, condition in enumerate(_objects(item, "conditions", where)):
            row = _condition_row(item, condition, path, f"{where}: conditions[{number}]")
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


def _value(tree: Mapping[str, Any], key: str, expected_type: Any, where: str) -> Any:
    """A value of a JSON object.

    Raises:
      DataError: it is missing, or of another type.
    """
    require_data(key in tree, where, f"the key {key!r}", f"the keys {', '.join(tree) or 'none'}")
    return conform(tree[key], expected_type, f"{where}: {key}")


def _objects(tree: Mapping[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """A list of objects in a JSON object."""
    return _value(tree, key, list[dict[str, Any]], where)


def _metric(suite: Mapping[str, Any], path: str) -> str:
    """The metric of a suite; the sum if it names none."""
    meta = conform(suite.get("meta") or {}, dict[str, Any], f"{path}: meta")
    metric = meta.get("metric", "sum")
    if isinstance(metric, list) and len(metric) == 1:
        metric = metric[0]
    is_known = isinstance(metric, str) and metric in METRICS
    require_data(is_known, f"{path}, meta.metric", f"one of {', '.join(METRICS)}", shown(metric))
    return metric


def _condition_row(
    item: Mapping[str, Any], condition: Mapping[str, Any], path: str, where: str
) -> dict[str, Any]:
    """The row of a condition of an item.

    Args:
      item: the item.
      condition: the condition.
      path: the suite.
      where: the place of the condition in it.
    """
    text = ""
    spans: dict[str, tuple[int, int]] = {}
    numbers = []
    for index, region in enumerate(_objects(condition, "regions", where)):
        where_region = f"{where}: regions[{index}]"
        content = _value(region, "content", str, where_region)
        if text and content:
            text += " "
        text += content
        numbers.append(_value(region, "region_number", int | str, where_region))
        spans[str(numbers[-1])] = len(text) - len(content), len(text)
    name = _value(condition, "condition_name", str, where)
    item_number = _value(item, "item_number", int | float | str, where.rpartition(": ")[0])
    require_data(
        len(spans) == len(numbers),
        f"{path}, item {item_number}, condition {name!r}",
        "each region_number once",
        numbers,
    )
    return {"item": item_number, "condition": name, "text": text, "regions": spans}
