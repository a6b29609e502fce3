"""A run of all fast tests that exceeds its budget fails, and says by what."""

import types

import pytest

from tests import costs
from tests.cpu_meter import Meter


@pytest.fixture
def config():
    """What pytest knows of a run of all fast tests by two workers: 0.3 units for two rows."""
    rows = [
        types.SimpleNamespace(
            nodeid=f"tests/a.py::test_b[{row}]",
            cpu_seconds=0.6,
            shared_cpu_seconds={},
            keywords={},
        )
        for row in range(2)
    ]
    reporter = types.SimpleNamespace(stats={"passed": rows})
    run = types.SimpleNamespace(has_budget=True, peak_gb=1.9, unit=lambda: 4.0, units=lambda: 109.0)
    option = types.SimpleNamespace(
        markexpr="not slow", keyword="", deselect=None, collectonly=False, record_costs=False
    )
    return types.SimpleNamespace(
        option=option,
        run_of_tests=run,
        args=["tests"],
        args_source=pytest.Config.ArgsSource.ARGS,
        ArgsSource=pytest.Config.ArgsSource,
        pluginmanager=types.SimpleNamespace(get_plugin=lambda name: reporter),
    )


def test_a_run_within_the_budget(config):
    assert costs._faults(config) == []


def test_too_much_time(config):
    config.run_of_tests.units = lambda: 111.0
    assert "took 111 units of CPU time; the budget is 100" in costs._faults(config)[0]


def test_too_much_memory(config):
    config.run_of_tests.peak_gb = 3.1
    assert "A worker took 3.1 GB of memory; the budget is 3.0 GB" in costs._faults(config)[0]


def test_an_expensive_test_without_a_declared_cost(config, tmp_path, monkeypatch):
    monkeypatch.setattr(costs, "RECORDED", tmp_path / "costs.json")
    config.run_of_tests.unit = lambda: 2.0
    (fault,) = costs._faults(config)
    assert fault.startswith("tests/a.py::test_b took 0.6 units of CPU time; up to 0.5 are free.")
    costs._declare(costs.Costs(costs._reports(config)).functions, 2.0)
    assert costs._faults(config) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [("keyword", "json"), ("markexpr", "slow"), ("deselect", ["a"]), ("collectonly", True)],
)
def test_a_run_of_some_tests_has_no_budget(config, option, value):
    assert costs._is_whole_fast_tier(config)
    setattr(config.option, option, value)
    assert not costs._is_whole_fast_tier(config)


def test_a_run_of_a_folder_has_no_budget(config):
    config.args = ["tests/unit"]
    assert not costs._is_whole_fast_tier(config)


def test_a_function_counts_only_where_its_file_takes_more_than_declared():
    """Which test pays for what a helper caches depends on their order."""
    declared = {"a.py::first": 2.0, "b.py::first": 2.0}
    functions = {"a.py::first": 0.1, "a.py::second": 2.0, "b.py::first": 2.0, "b.py::second": 1.7}
    assert costs.undeclared(functions, declared) == ["b.py::second"]


def test_shared_parts_are_charged_by_themselves(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tests.cpu_meter.cpu_seconds", lambda: now[0])
    meter = Meter()
    now[0] = 1.0
    with meter.charge_to("world"):
        now[0] = 3.0
        with meter.charge_to("corpus"):
            now[0] = 8.0
    now[0] = 15.0
    assert meter.take() == (8.0, {"world": 2.0, "corpus": 5.0})
    assert meter.take() == (0.0, {})
