"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

import itertools

from tests.helpers.oracles.metrics import number_oracles

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
    ("token_regression", {**_LETTERS, **_TARGET}, 1),
]


def _numbers(examples, predictions):
    true = itertools.chain(*(example.tags for example in examples))
    return [*true], [*itertools.chain(*(prediction["scores"] for prediction in predictions))]


ORACLES = {"token_regression": number_oracles(_numbers)}
