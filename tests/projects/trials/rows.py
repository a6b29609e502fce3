"""Rows in tables of the core's tests, see `tests/helpers/package/of_projects.py`."""

CALLERS_OF_FINE_TUNING = {"projects.trials.runs": {"folds": 2}}
