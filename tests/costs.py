"""What tests cost: CPU-seconds of each, with the processes that it starts, and memory of a worker.

A plugin of pytest, which prints the sums at the end of a run. CPU-seconds hardly depend on what
else the machine does. What several tests share is counted for the first of them. With
XLNET_TEST_COSTS, a file gets {test: CPU-seconds} as JSON, added to what it has of other tests, for
`tools.mutants` and `tools.changed_tests`.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import resource

import pytest

_MOST_ROWS = 15
_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
_cpu = {"seconds": 0.0}


def _seconds() -> float:
    usages = [resource.getrusage(which) for which in _PROCESSES]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def pytest_sessionstart(session):
    _cpu["seconds"] = _seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    now = _seconds()
    report.cpu_seconds, _cpu["seconds"] = now - _cpu["seconds"], now
    report.peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return report


def pytest_terminal_summary(terminalreporter, config):
    reports = [r for found in terminalreporter.stats.values() for r in found]
    reports = [r for r in reports if hasattr(r, "cpu_seconds")]
    if len({r.nodeid for r in reports}) < 2:
        return
    if path := os.environ.get("XLNET_TEST_COSTS"):
        tests = collections.Counter()
        for report in reports:
            tests[report.nodeid] += report.cpu_seconds
        (file := pathlib.Path(path)).parent.mkdir(exist_ok=True)
        others = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(others | tests))
    tiers, folders, files = collections.Counter(), collections.Counter(), collections.Counter()
    for report in reports:
        tiers["slow" if "slow" in report.keywords else "fast"] += report.cpu_seconds
        folders["/".join(report.nodeid.split("::")[0].split("/")[:3])] += report.cpu_seconds
        files[report.nodeid.split("[")[0]] += report.cpu_seconds
    terminalreporter.section("CPU-seconds")
    peak = max(report.peak_bytes for report in reports) / 1e9
    sums = ", ".join(f"{tier} {seconds:,.0f}" for tier, seconds in tiers.items())
    terminalreporter.line(f"{sums}; at most {peak:.1f} GB in a worker")
    for table in (folders, files):
        for name, seconds in table.most_common(_MOST_ROWS):
            terminalreporter.line(f"{seconds:8.1f}  {name}")
