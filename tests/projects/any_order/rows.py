"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

from tests.helpers.package.budgets import of_rows


def pair(number):
    return {"good": f"The cat sat {number % 7}.", "bad": f"The the cat {number % 7}."}


def norm(number):
    cloze = number * 7919 % 101 / 101
    return {"context": "The cat sat", "completion": f"on water {number % 7}", "cloze": cloze}


def blank(number):
    return {"text": f"The ____ sat on the water {number % 7}."}


BUDGETS = {
    "words": of_rows(),
    "mutual_information": of_rows(few=500),
    "pairs": of_rows(row=pair, bytes_of_one=6000),  # Two texts, with the scores of their tokens.
    "norms": of_rows("--norms=cloze", row=norm),
    "consistency": of_rows(few=500),
    "candidates": of_rows("--candidates=3", row=blank, few=40),
    "unmask": of_rows("--steps=1", row=blank, few=500),
    "score_steps": of_rows("--steps=1", few=500),
}

# (verb, result, the line that says it).
COUNTED = [("unmask", {"continued": 0, "filled": 2}, "done: 2 blanks filled")]
