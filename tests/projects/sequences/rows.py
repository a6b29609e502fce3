"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

import pytest

_LETTERS = {"label_unit": "letter"}
_TARGET = {"target_means": (3.0,), "target_scales": (2.0,)}

TAGS = {"token_regression": 0.5}
EFFECTS = [("units", "task.label_unit=letter task.name=token_classification")]
KEYS_OF_TASKS = {
    "label_unit": ({"token_classification", "token_regression"}, "word", "letter"),
}
TASKS_WITH_KEYS = {"token_regression": {"label_smoothing"}}
SERVED = [
    ("token_classification", _LETTERS, 1),
    pytest.param("token_regression", {**_LETTERS, **_TARGET}, 1, marks=pytest.mark.slow),
]
