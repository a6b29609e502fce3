"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from tests.helpers.package.budgets import of_rows


def hypotheses(number):
    best = {"text": f"the cat {number % 7}", "am": -1.5}
    return {"id": number, "hyps": [best, {"text": "the cat sat", "am": -2.5}]}


BUDGETS = {"rescore": of_rows("--weights=am:1,lm:0.7", row=hypotheses)}
