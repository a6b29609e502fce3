"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

TAGS = {"token_regression": 0.5}
EFFECTS = [("units", "task.label_unit=letter task.name=token_classification")]
