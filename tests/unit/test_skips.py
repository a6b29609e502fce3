"""The end of a run says what was skipped; with --no-skips that fails it."""

import subprocess
import sys

import pytest

from tests.helpers.documents import ROOT
from tests.skips import ALLOWED, HINT

ONE_OF_EACH = """
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
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "--rootdir", "."]
    done = subprocess.run(
        [*command, *flags, "."],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("workers", [(), ("--numprocesses=2",)], ids=["one", "two"])
def test_skips_are_listed_and_fail_a_run_that_forbids_them(tmp_path, workers):
    (tmp_path / "test_some.py").write_text(ONE_OF_EACH.format(reason="no browser is installed"))
    (tmp_path / "test_file.py").write_text(WHOLE_FILE)
    status, output = run(tmp_path, *workers)
    assert status == 0
    assert "3 skipped: no browser is installed" in output
    assert "1 skipped: could not import 'a_package_that_nobody_has'" in output
    assert HINT in output
    status, output = run(tmp_path, "--no-skips", *workers)
    assert status == 1 and "--no-skips: the run fails" in output


def test_allowed_reasons_and_no_skips_pass(tmp_path):
    (reason,) = ALLOWED
    (tmp_path / "test_some.py").write_text(ONE_OF_EACH.format(reason=reason))
    status, output = run(tmp_path, "--no-skips")
    assert status == 0 and f"3 skipped: {reason}" in output and HINT not in output
    (tmp_path / "test_some.py").write_text("def test_passes():\n    pass\n")
    status, output = run(tmp_path, "--no-skips")
    assert status == 0 and "skipped" not in output
