"""The end of a run says what was skipped; with --no-skips that fails it."""

import subprocess
import sys

from tests.helpers.documents import ROOT
from tests.skips import ALLOWED, HINT

SKIPPED = """
import pytest

@pytest.mark.skipif(True, reason={reason!r})
@pytest.mark.parametrize("number", range(3))
def test_marked(number):
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


def test_skips_are_listed_and_fail_a_run_that_forbids_them(tmp_path):
    (tmp_path / "test_some.py").write_text(SKIPPED.format(reason="no browser is installed"))
    (tmp_path / "test_file.py").write_text(WHOLE_FILE)
    for flags, status in (((), 0), (("--no-skips", "--numprocesses=2"), 1)):
        found, output = run(tmp_path, *flags)
        assert found == status and HINT in output
        assert "3 skipped: no browser is installed" in output
        assert "1 skipped: could not import 'a_package_that_nobody_has'" in output


def test_allowed_reasons_pass(tmp_path):
    (reason,) = ALLOWED
    text = SKIPPED.format(reason=reason) + "\ndef test_passes():\n    pass\n"
    (tmp_path / "test_some.py").write_text(text)
    status, output = run(tmp_path, "--no-skips")
    assert status == 0 and f"3 skipped: {reason}" in output and HINT not in output
