"""The end of a run says what was skipped; with --no-skips that fails it."""

import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT
from tests.skips import ALLOWED, HINT

SKIPPED = """
import pytest

@pytest.mark.skipif(True, reason={reason!r})
@pytest.mark.parametrize("number", range(3))
def test_marked(number):
    pass

def test_passes():
    pass
"""
WHOLE_FILE = 'import pytest\n\npytest.importorskip("a_package_that_nobody_has")\n'


def run(folder, *flags):
    """Exit status and output of pytest on a folder, with this plugin only."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "--rootdir", ".", *flags, "."]
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("reason", "flags", "status"),
    [
        ("no browser is installed", [], 0),
        ("no browser is installed", ["--no-skips", "--numprocesses=2"], 1),
        *(pytest.param(reason, ["--no-skips"], 0, marks=pytest.mark.slow) for reason in ALLOWED),
    ],
)
def test_skips_are_listed_and_fail_a_run_that_forbids_them(reason, flags, status, tmp_path):
    (tmp_path / "test_some.py").write_text(SKIPPED.format(reason=reason))
    is_allowed = reason in ALLOWED
    if not is_allowed:
        (tmp_path / "test_file.py").write_text(WHOLE_FILE)
    found, output = run(tmp_path, *flags)
    assert found == status and (HINT in output) != is_allowed
    assert f"3 skipped: {reason}" in output
    assert ("1 skipped: could not import 'a_package_that_nobody_has'" in output) != is_allowed
