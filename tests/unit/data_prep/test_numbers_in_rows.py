"""Numbers that rows bring: one reader, for targets, relevance and whatever else is a number."""

import json
import math

import pytest

from data_prep.tasks.rows import numbers
from data_prep.tasks.task_data import read_task
from official.xlnet.configs.task import TaskConfig
from official.xlnet.errors import DataError

NAN, INFINITY = math.nan, math.inf
NUMBERS = {2: 2.0, -0.5: -0.5, "3": 3.0, " 4.5 ": 4.5, "-1e1": -10.0, "+.5": 0.5, 0: 0.0}
WRONG = [NAN, INFINITY, -INFINITY, 1e19, -1e19, 10**400, "nan", "inf", "-Infinity", "1e999"]
WRONG += ["1_000", "\N{FULLWIDTH DIGIT ONE}", "1,5", "0x1", "3 stars", "many", [], [1], {}]
TRUTH_VALUES = [True, False, "true", "False"]
TASKS = {  # {task: (column of the number, the other columns)}
    "regression": ("label", {"text": "a film"}),
    "ranking": ("relevance", {"query": "a", "document": "b"}),
}


def read(tmp_path, task, values):
    column, others = TASKS[task]
    path = tmp_path / "rows.jsonl"
    rows = [json.dumps({**others, column: value}) for value in values]
    path.write_text("\n".join(rows) + "\n")
    examples, _ = read_task(str(path), TaskConfig.create(name=task), max_lost=0)
    return [getattr(example, example.label_field) for example in examples]


@pytest.mark.parametrize("task", TASKS)
def test_numbers_of_tasks_are_read_alike(task, tmp_path):
    assert read(tmp_path, task, NUMBERS) == [*NUMBERS.values()]
    column, _ = TASKS[task]
    truth_values = [] if task == "ranking" else TRUTH_VALUES
    for value in [*WRONG, *truth_values]:
        if type(value) is int:  # JSON of such numbers is refused before.
            continue
        with pytest.raises(DataError) as error:
            read(tmp_path, task, [2, value])
        message = str(error.value)
        # NaN is a missing value, as in pandas.
        expected = "a label" if value is NAN and task == "regression" else "a number of at most"
        assert f"rows.jsonl, row 2: expected {expected}" in message, value
        assert f" in {column!r}, got " in message, value


def test_a_judgement_may_be_true_or_false(tmp_path):
    assert read(tmp_path, "ranking", TRUTH_VALUES) == [1.0, 0.0, 1.0, 0.0]


def test_other_columns_of_numbers_are_read_alike():
    rows = [{"norm": value} for value in NUMBERS]
    assert numbers(rows, "norm", "a.csv") == [*NUMBERS.values()]
    for value in [*WRONG, *TRUTH_VALUES, None, ""]:
        with pytest.raises(DataError, match=r"a\.csv, row 8: expected a number .* in 'norm', got "):
            numbers([*rows, {"norm": value}], "norm", "a.csv")
    with pytest.raises(DataError, match=r"row 1: expected .* 'norm', got the columns text, norms"):
        numbers([{"text": "a", "norms": 1}], "norm", "a.csv")
