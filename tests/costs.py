"""CPU time and memory of the tests: printed at the end of a run, and held to a budget.

A plugin of pytest. The unit of CPU time is one `import tensorflow`, in a process that starts with
the run, so that the budget means the same on any machine and hardly depends on what else it does.
The processes that a test starts are charged to it; fixtures and parts of `World` that tests share
are charged by themselves.

A run of all fast tests (`make test` without TESTS) fails if

- it takes a tenth more than `BUDGET_UNITS`, with the start of its workers;
- a worker takes more than `WORKER_GB` of memory;
- the rows of a test function take more than `FREE_UNITS` and more than `tests/costs.json` declares.

`make costs` writes that file. With XLNET_TEST_COSTS, each run updates a JSON file of {test:
CPU-seconds}.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Mapping

import pytest

from tests.cpu_meter import METER, cpu_seconds, peak_gb

BUDGET_UNITS = 100.0
FREE_UNITS = 0.5
WORKER_GB = 3.0
RECORDED = pathlib.Path(__file__).with_name("costs.json")
_LEAST_RECORDED_UNITS = 0.02
# The mean of several, one after the other: one alone differs by a quarter from run to run.
_NUM_IMPORTS = 4
_IMPORT = (sys.executable, "-c", "import tensorflow")
_IMPORTS = f"import subprocess, sys\nfor _ in range({_NUM_IMPORTS}): subprocess.run(sys.argv[1:])"
_START = "start of workers, collection"
_MOST_ROWS = 15


class Run:
    """What the process that starts the tests measures of a run.

    Args:
      has_budget: Whether to measure the unit, too.
    """

    def __init__(self, has_budget: bool):
        self.has_budget = has_budget
        self.start = time.perf_counter()
        self.cpu_seconds_of_workers = 0.0
        self.peak_gb = 0.0
        self._unit = 0.0
        if has_budget:  # Beside the start of the workers: under load, as the tests are.
            self._importing = subprocess.Popen(
                [sys.executable, "-c", _IMPORTS, *_IMPORT], stderr=subprocess.DEVNULL
            )

    def unit(self) -> float:
        """CPU-seconds of `import tensorflow`."""
        if not self._unit:
            _, status, usage = os.wait4(self._importing.pid, 0)
            self._importing.returncode = os.waitstatus_to_exitcode(status)
            self._unit = (usage.ru_utime + usage.ru_stime) / _NUM_IMPORTS
        return self._unit

    def cpu_seconds(self) -> float:
        """CPU-seconds of the whole run, with its workers."""
        if self.cpu_seconds_of_workers:  # They are children of this process.
            return time.process_time() + self.cpu_seconds_of_workers
        return cpu_seconds() - _NUM_IMPORTS * self._unit

    def units(self) -> float:
        return self.cpu_seconds() / self.unit()


class Costs:
    """CPU-seconds of the reports of a run."""

    def __init__(self, reports):
        self.tests: collections.Counter[str] = collections.Counter()
        self.tiers: collections.Counter[str] = collections.Counter()
        self.functions: collections.Counter[str] = collections.Counter()
        self.files: collections.Counter[str] = collections.Counter()
        self.folders: collections.Counter[str] = collections.Counter()
        self.parts: collections.Counter[str] = collections.Counter()
        for report in reports:
            file = report.nodeid.split("::")[0]
            self.tests[report.nodeid] += report.cpu_seconds
            self.tiers["slow" if "slow" in report.keywords else "fast"] += report.cpu_seconds
            self.functions[report.nodeid.split("[")[0]] += report.cpu_seconds
            self.files[file] += report.cpu_seconds
            self.folders["/".join(file.split("/")[:3])] += report.cpu_seconds
            self.parts.update(report.shared_cpu_seconds)


def undeclared(functions: Mapping[str, float], declared: Mapping[str, float]) -> list[str]:
    """Test functions that take more units than is declared for them.

    Which test pays for what a helper caches depends on their order, so a function counts only where
    its file takes more than is declared for it, too.

    Args:
      functions: Units that the rows of each function took, as {"file::function": units}.
      declared: The same of earlier runs.
    """

    def of_files(costs: Mapping[str, float]) -> collections.Counter[str]:
        files: collections.Counter[str] = collections.Counter()
        for function, cost in costs.items():
            files[function.split("::")[0]] += cost
        return files

    def is_more(cost: float, declared_cost: float) -> bool:
        return cost > 1.5 * declared_cost + FREE_UNITS

    files, declared_files = of_files(functions), of_files(declared)
    return [
        function
        for function, cost in functions.items()
        if is_more(cost, declared.get(function, 0))
        and is_more(files[function.split("::")[0]], declared_files[function.split("::")[0]])
    ]


def pytest_addoption(parser):
    parser.addoption(
        "--record-costs", action="store_true", help=f"Write what the tests cost to {RECORDED.name}."
    )


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.run_of_tests = Run(has_budget=_is_whole_fast_tier(config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    session.config.start_seconds, _ = METER.take()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if fixturedef.scope == "function":
        return (yield)
    with METER.charge_to(f"fixture {fixturedef.argname}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.cpu_seconds, report.shared_cpu_seconds = METER.take()
    return report


def pytest_testnodedown(node, error):
    """A worker has ended: what it says it has cost."""
    output = getattr(node, "workeroutput", None) or {}
    run = node.config.run_of_tests
    run.cpu_seconds_of_workers += output.get("cpu_seconds", 0.0)
    run.peak_gb = max(run.peak_gb, output.get("peak_gb", 0.0))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    config = session.config
    if hasattr(config, "workerinput"):
        config.workeroutput["cpu_seconds"] = cpu_seconds()
        config.workeroutput["peak_gb"] = peak_gb()
    elif session.exitstatus == pytest.ExitCode.OK and _faults(config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _reports(config) -> list[pytest.TestReport]:
    stats = config.pluginmanager.get_plugin("terminalreporter").stats
    reports = [report for group in stats.values() for report in group]
    return [report for report in reports if hasattr(report, "cpu_seconds")]


def _is_whole_fast_tier(config) -> bool:
    """Whether the run is of all fast tests, as `make test` makes it, and measures nothing else."""
    options = config.option
    chooses = options.keyword or options.deselect or getattr(options, "cov_source", None)
    names_files = config.args_source == config.ArgsSource.ARGS and config.args != ["tests"]
    of_fast = options.markexpr == "not slow"
    return of_fast and not chooses and not names_files and not options.collectonly


def _declared() -> dict[str, float]:
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def _faults(config) -> list[str]:
    """Sentences that say how a run of all fast tests exceeds its budget."""
    run = config.run_of_tests
    if not run.has_budget or config.option.record_costs:
        return []
    faults = []
    if run.units() > 1.1 * BUDGET_UNITS:
        faults.append(
            f"The fast tests took {run.units():.0f} units of CPU time; the budget is "
            f"{BUDGET_UNITS:.0f}. Make the most expensive ones cheaper, or mark rows as slow."
        )
    if run.peak_gb > WORKER_GB:
        faults.append(
            f"A worker took {run.peak_gb:.1f} GB of memory; the budget is {WORKER_GB:.1f} GB."
        )
    functions = Costs(_reports(config)).functions
    units = {name: seconds / run.unit() for name, seconds in functions.items()}
    faults += [
        f"{name} took {units[name]:.1f} units of CPU time; up to {FREE_UNITS} are free. Make it "
        "cheaper or mark it as slow; `make costs` declares it."
        for name in undeclared(units, _declared())
    ]
    return faults


def _record(path: str, tests: Mapping[str, float]) -> None:
    """Updates the JSON file of {test: CPU-seconds}."""
    file = pathlib.Path(path)
    file.parent.mkdir(exist_ok=True)
    others = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(others | dict(tests)))


def _declare(functions: Mapping[str, float], unit: float) -> None:
    """Writes `tests/costs.json`: {test function: units}."""
    units = {name: round(seconds / unit, 2) for name, seconds in sorted(functions.items())}
    least = _LEAST_RECORDED_UNITS
    declared = {name: cost for name, cost in units.items() if cost >= least}
    RECORDED.write_text(json.dumps(declared, indent=0) + "\n")


def pytest_terminal_summary(terminalreporter, config):
    reports = _reports(config)
    costs, run = Costs(reports), config.run_of_tests
    if len(costs.tests) < 2:
        return
    if path := os.environ.get("XLNET_TEST_COSTS"):
        _record(path, costs.tests)
    if config.option.record_costs and run.has_budget:
        _declare(costs.functions, run.unit())
    highest_gb = run.peak_gb or peak_gb()
    minutes, seconds = divmod(round(time.perf_counter() - run.start), 60)
    terminalreporter.section("CPU time")
    terminalreporter.line(
        f"{run.cpu_seconds():,.0f} CPU-seconds; at most {highest_gb:.1f} GB in a worker; "
        f"{minutes} min {seconds:02d} s"
    )
    if run.has_budget:
        terminalreporter.line(
            f"{run.units():.0f} units of {run.unit():.1f} CPU-seconds, one `import tensorflow`; "
            f"the budget is {BUDGET_UNITS:.0f}, and {WORKER_GB:.1f} GB in a worker"
        )
    for fault in _faults(config):
        terminalreporter.line(fault, red=True)
    for table in (costs.tiers, costs.parts, costs.folders, costs.functions):
        for name, seconds_spent in table.most_common(_MOST_ROWS):
            terminalreporter.line(f"{seconds_spent:8.1f}  {name}")
