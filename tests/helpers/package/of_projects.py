"""What projects bring to tables of the core's tests: `tests/projects/<name>/rows.py`.

A table is a list of rows or a dictionary, under the same name in the files of all that have some.
"""

import importlib
import pathlib

import pytest

from official.xlnet.projects import PROJECTS

ROOT = pathlib.Path(__file__).parents[3]


def _tables(name):
    for project in PROJECTS:
        if (ROOT / "tests/projects" / project / "rows.py").exists():
            rows = importlib.import_module(f"tests.projects.{project}.rows")
            if hasattr(rows, name):
                yield getattr(rows, name)


def rows(table):
    """The rows of all projects for a table that is a list."""
    return [row for found in _tables(table) for row in found]


def slow_rows(table):
    """Parameters of a test, each a single value, that are slow as the tests of projects are."""
    return [pytest.param(row, marks=pytest.mark.slow) for row in rows(table)]


def entries(table):
    """The entries of all projects for a table that is a dictionary."""
    return {key: value for found in _tables(table) for key, value in found.items()}
