"""SyntaxGym: its rules for formulas and metrics, written with pyparsing, as its evaluator is."""

import copy
import functools
import json
import random
import statistics

import numpy as np
import pyparsing
import pytest

from official.xlnet.errors import DataError
from official.xlnet.inference.score import Score
from official.xlnet.projects.any_order.pairs.suites import (
    check_predictions,
    prediction_margin,
    read_suite,
    suite_margins,
)

SURPRISALS = {("1", "good"): 2.0, ("2", "good"): 1.0, ("*", "good"): 3.0, ("2", "bad"): 4.5}


@pytest.mark.parametrize(
    ("formula", "margin"),
    [
        ("(2;%good%) < (2;%bad%)", 3.5),
        ("((2;%good%)+(1;%good%)) > (2;%bad%)", -1.5),
        ("[(2;%good%) < (2;%bad%)] & [(*;%good%) - (1;%good%) < 1.25]", 0.25),
        ("[(2;%good%) > (2;%bad%)] | [(2;%good%) = (2;%good%)]", 0.5),
    ],
)
def test_margins_of_predictions(formula, margin):
    assert prediction_margin(formula, SURPRISALS) == margin


@pytest.mark.parametrize(
    "formula",
    [
        "(9;%good%) < 1",
        "(2;%good%) <",
        "f(1)",
        "'a' < 'b'",
        "1 < 2 < 3",
        "(2;%good%) == 1",
        "1 < 2 && 2 < 3",
        "1 < 2 & 3",
        "(1 < 2) + 1 < 3",
        "2 * 3 < 1",
        "-(2;%good%) < 1",
        "(1 < 2",
        "1 < 2)",
        "(2;%good%)",
        "",
    ],
)
def test_other_formulas_are_named(formula):
    with pytest.raises(DataError, match=r"prediction .*: expected comparisons of regions"):
        prediction_margin(formula, SURPRISALS)


def test_pieces_are_of_the_region_that_they_begin_in():
    score = Score(
        "The cats", ["The", "cat", "s"], np.array([-1.0, -2.0, -4.0]), [(0, 3), (4, 7), (7, 8)]
    )
    row = {"item": 5, "condition": "x", "regions": {"1": (0, 3), "2": (4, 8), "3": (8, 8)}}
    formulas = ["(2;%x%) > (1;%x%)", "(*;%x%) > (3;%x%)"]
    found = suite_margins([row], [score], formulas)
    assert [each["difference"] for each in found] == [5.0, 7.0]


def evaluator(surprisals):
    """Whether a formula holds, by a grammar of three levels, each from left to right."""

    def evaluated(tokens):
        value, *rest = tokens[0]
        for sign, other in zip(rest[::2], rest[1::2], strict=True):
            value = {
                "+": lambda a, b: a + b,
                "-": lambda a, b: a - b,
                "<": lambda a, b: a < b,
                ">": lambda a, b: a > b,
                "=": lambda a, b: bool(np.isclose(a, b, rtol=1e-5, atol=1e-3)),
                "&": lambda a, b: a and b,
                "|": lambda a, b: a or b,
            }[sign](value, other)
        return value

    number = pyparsing.common.number.copy().set_parse_action(lambda tokens: float(tokens[0]))
    name = pyparsing.Word(pyparsing.alphanums + "_-")
    region = ("(" + (pyparsing.Word(pyparsing.nums) | "*") + ";%" + name + "%" + ")").copy()
    region.set_parse_action(lambda tokens: surprisals[tokens[1], tokens[3]])
    levels = [(pyparsing.one_of(signs), 2, pyparsing.OpAssoc.LEFT, evaluated) for signs in LEVELS]
    grammar = pyparsing.infix_notation(region | number, levels)
    return lambda formula: grammar.parse_string(formula, parse_all=True)[0]


LEVELS = ("- +", "< > =", "& |")


def random_formula(rng, level=2, depth=0):
    if level == 0 or rng.random() < 0.2:
        operands = [random_operand(rng) for _ in range(rng.randint(1, 4))]
        value = operands[0] + "".join(f" {rng.choice('+-')} {x}" for x in operands[1:])
        return value if level == 0 else f"{value} {rng.choice('<>=')} {random_operand(rng)}"
    if level == 1:
        left, right = (random_formula(rng, 0, depth) for _ in range(2))
        return f"{left} {rng.choice('<>=')} {right}"
    parts = [random_formula(rng, 1, depth) for _ in range(rng.randint(1, 4))]
    if depth < 2 and rng.random() < 0.5:
        parts.append(f"({random_formula(rng, 2, depth + 1)})")
    return parts[0] + "".join(f" {rng.choice('&|')} {part}" for part in parts[1:])


def random_operand(rng):
    if rng.random() < 0.3:
        return rng.choice(["1", "2.5", "0.9995", "-1.5", "3"])
    return f"({rng.choice('12*')};%{rng.choice(['good', 'b-d_2'])}%)"


def test_predictions_hold_as_the_evaluator_says():
    rng = random.Random(0)
    seen = set()
    for _ in range(150):
        surprisals = {
            (region, condition): rng.choice([1.0, 1.0004, 1.002, 2.5, 3.0])
            for region in "12*"
            for condition in ("good", "b-d_2")
        }
        holds = evaluator(surprisals)
        for _ in range(2):
            formula = random_formula(rng)
            expected = holds(formula)
            assert (prediction_margin(formula, surprisals) > 0) == expected, formula
            square = formula.replace("(1;", "(01;")
            assert (prediction_margin(square, surprisals) > 0) == expected, square
            seen.add(bool(expected))
    assert seen == {True, False}


@pytest.mark.parametrize(
    ("metric", "function"),
    [
        ("sum", sum),
        ("mean", statistics.mean),
        ("median", statistics.median),
        ("range", lambda values: max(values) - min(values)),
        ("max", max),
        ("min", min),
    ],
)
def test_regions_have_the_metric_of_the_suite(metric, function, tmp_path):
    regions = [{"region_number": 1, "content": "ab c"}, {"region_number": 2, "content": "d"}]
    suite = {
        "meta": {"metric": metric},
        "predictions": [{"type": "formula", "formula": "(1;%x%) > 1 & (*;%x%) > 2"}],
        "items": [{"item_number": 4, "conditions": [{"condition_name": "x", "regions": regions}]}],
    }
    path = tmp_path / "suite.json"
    path.write_text(json.dumps(suite))
    rows, formulas, found = read_suite(str(path))
    assert found == metric
    check_predictions(rows, formulas, metric)
    log_p = np.array([-1.0, -2.0, -4.5, -7.0])
    score = Score("ab c d", list("abcd"), log_p, [(0, 1), (1, 2), (3, 4), (5, 6)])
    one = function([1.0, 2.0, 4.5])
    every = one + function([7.0])
    (row,) = suite_margins(rows, [score], formulas, metric)
    assert row["difference"] == pytest.approx(min(one - 1, every - 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"meta": {"metric": "all"}}, "meta.metric: expected one of sum, mean, .*, got 'all'"),
        ({"meta": {"metric": ["sum", "max"]}}, "meta.metric: expected one of sum"),
        ({"predictions": [{"type": "rank", "formula": "1 < 2"}]}, "predictions of type formula"),
    ],
)
def test_what_is_not_there_is_refused(change, message, tmp_path):
    path = tmp_path / "suite.json"
    path.write_text(json.dumps({"predictions": [{"formula": "1 < 2"}], "items": []} | change))
    if "meta" in change:
        regions = [{"region_number": 1, "content": "a"}]
        conditions = [{"condition_name": "x", "regions": regions}]
        suite = json.loads(path.read_text())
        suite["items"] = [{"item_number": 1, "conditions": conditions}]
        path.write_text(json.dumps(suite))
    with pytest.raises(DataError, match=message):
        read_suite(str(path))


@pytest.mark.parametrize(
    ("item", "name", "number", "message"),
    [
        (1, "x", 2, "item 1: expected each condition once, got 'x' twice"),
        (2, "y", 1, "item 2, condition 'y': expected each region_number once"),
        (2, "y", None, r"items\[3\]: conditions\[0\]: regions\[1\]: .* the key 'region_number'"),
    ],
)
def test_each_condition_and_region_has_its_own_name(item, name, number, message, tmp_path):
    def item_of(item, name, number):
        regions = [{"region_number": n, "content": "a"} for n in (1, number) if n]
        if number is None:
            regions.append({"content": "b"})
        return {"item_number": item, "conditions": [{"condition_name": name, "regions": regions}]}

    path = tmp_path / "suite.json"
    suite = {"predictions": [{"formula": "1 < 2"}], "items": [item_of(1, "x", 2)]}
    for other in [(1, "y", 2), (2, "x", 2)]:
        suite["items"].append(item_of(*other))
    path.write_text(json.dumps(suite))
    assert len(read_suite(str(path))[0]) == 3
    suite["items"].append(item_of(item, name, number))
    path.write_text(json.dumps(suite))
    with pytest.raises(DataError, match=message):
        read_suite(str(path))


SUITE = {
    "meta": {"metric": "sum", "name": "agreement"},
    "predictions": [{"type": "formula", "formula": "(1;%x%) > (2;%x%)"}],
    "items": [
        {
            "item_number": 1,
            "conditions": [
                {
                    "condition_name": "x",
                    "regions": [
                        {"region_number": 1, "content": "a"},
                        {"region_number": 2, "content": "b"},
                    ],
                }
            ],
        }
    ],
}
OTHER_VALUES = [None, True, 3, 1.5, "x", "", [], ["x"], [[]], {}, {"x": 1}, [{}], [{"x": None}]]


def places(tree):
    """Paths of all values in a tree of JSON, each a tuple of keys."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in children:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *place) for place in places(value))


@pytest.mark.parametrize("place", places(SUITE), ids=str)
def test_any_other_value_anywhere_in_a_suite_is_one_sentence(place, tmp_path):
    """Or another suite, or no suite, which the reader of tables takes or refuses."""
    path = tmp_path / "suite.json"
    outcomes = set()
    for value in ["missing", *OTHER_VALUES]:
        suite = copy.deepcopy(SUITE)
        owner = functools.reduce(lambda tree, key: tree[key], place[:-1], suite)
        if value == "missing":
            del owner[place[-1]]
        else:
            owner[place[-1]] = value
        path.write_text(json.dumps(suite))
        try:
            found = read_suite(str(path))
            if found is not None:
                check_predictions(*found)
            outcomes.add("no suite" if found is None else "suite")
        except DataError as error:
            outcomes.add("refused")
            assert str(error).startswith((str(path), "prediction ", "item ")), error
            assert "\n" not in str(error)
    is_free = place in [("meta", "name"), ("meta",)]
    assert "refused" in outcomes or is_free


def test_a_mean_of_no_tokens_is_refused_before_scoring():
    row = {"item": 5, "condition": "x", "regions": {"1": (0, 3), "2": (3, 3)}}
    check_predictions([row], ["(2;%x%) < 1"], "sum")
    check_predictions([row], ["(1;%x%) < 1"], "mean")
    with pytest.raises(
        DataError, match=r"item 5, .*expected tokens in each region, for their mean"
    ):
        check_predictions([row], ["(2;%x%) < 1"], "mean")
