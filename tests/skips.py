"""Skipped tests: listed at the end of a run, and an error with `--no-skips`.

A plugin of pytest. `make setup-all` installs what tests wait for (a browser, PyTorch, jax).
"""

from __future__ import annotations

import collections

import pytest

# Reasons for which a test may skip even with --no-skips: what cannot be installed.
ALLOWED = {
    "real text is not part of the clone": "it lies beside a checkout, or nowhere",
    "nothing can be mounted here": "the kernel or the container forbids it",
}
HINT = "`make setup-all` installs what they need; then `make test` runs them."


def pytest_addoption(parser):
    parser.addoption(
        "--no-skips",
        action="store_true",
        help="A skipped test fails the run, except for the reasons in tests/skips.py.",
    )


def _skipped(config) -> collections.Counter[str]:
    """Number of skipped tests, or files of tests, for each reason."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    places = {(r.nodeid, _reason(r)) for r in reporter.stats.get("skipped", ())}
    return collections.Counter(reason for _, reason in places)


def _reason(report) -> str:
    """Why a test was skipped, in pytest's words without its prefix."""
    _, _, reason = report.longrepr
    return reason.removeprefix("Skipped: ")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    config = session.config
    if hasattr(config, "workerinput") or not config.getoption("no_skips"):
        return
    if session.exitstatus == pytest.ExitCode.OK and set(_skipped(config)) - set(ALLOWED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config):
    skipped = _skipped(config)
    if not skipped:
        return
    terminalreporter.section("skipped tests")
    for reason, number in sorted(skipped.items()):
        note = f" (allowed: {ALLOWED[reason]})" if reason in ALLOWED else ""
        terminalreporter.line(f"{number} skipped: {reason}{note}")
    if set(skipped) - set(ALLOWED):
        terminalreporter.line(HINT)
        if config.getoption("no_skips"):
            terminalreporter.line("--no-skips: the run fails.", red=True)
