"""Runs the tests that `tools.changed_tests` has selected, in its order.

A plugin of pytest. The lines of the file `--selected=FILE` are files, test functions, rows, and
`tests/conformance::WORD` for the rows of a name; `tests` are all fast tests. A slow test runs if
its row is listed.
"""

from __future__ import annotations

import pathlib

import pytest

from tools.changed_tests import CONFORMANCE, words_of_row


def pytest_addoption(parser):
    parser.addoption("--selected", help="A file with the tests to run, one a line.")


def pytest_configure(config):
    path = config.getoption("selected")
    if not path:
        return
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    config.place_of_test = {line: place for place, line in enumerate(lines)}
    config.args[:] = dict.fromkeys(line.split("::")[0] for line in lines)
    if "tests" not in lines:
        config.option.markexpr = "not nightly"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Before `tests/conftest.py` marks the tests of projects as slow."""
    if not config.getoption("selected"):
        return
    places = {}
    for item in items:
        number = place(item, config.place_of_test)
        if number is not None:
            places[item] = number
    config.hook.pytest_deselected(items=[item for item in items if item not in places])
    items[:] = sorted(places, key=places.get)


def place(item, place_of_test):
    """Number of the line that selects a test; None if no line does."""
    if item.nodeid in place_of_test:
        return place_of_test[item.nodeid]
    if item.get_closest_marker("slow"):
        return None
    file = item.nodeid.split("::")[0]
    names = [item.nodeid.split("[")[0], file, "tests"]
    if file.startswith(f"{CONFORMANCE}/"):
        names += [f"{CONFORMANCE}::{word}" for word in words_of_row(item.nodeid)]
    places = [place_of_test[name] for name in names if name in place_of_test]
    return min(places, default=None)
