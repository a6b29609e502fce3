"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

TAGS = {"token_regression": 0.5}
EFFECTS = [("units", "task.label_unit=letter task.name=token_classification")]
KEYS_OF_TASKS = {
    "label_unit": ({"token_classification", "token_regression"}, "word", "letter"),
}
TASKS_WITH_KEYS = {"token_regression": {"label_smoothing"}}
