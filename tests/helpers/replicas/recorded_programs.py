"""Programs on the PATH that record how launch files call them."""

import json
import os
import sys

import pytest

# Records its arguments as a line of the file `calls`; XLNET_TEST_STATUS says what it ends with.
RECORDING = """
import json, os, sys
folder, name = os.path.split(sys.argv[0])
with open(os.path.join(folder, "calls"), "a") as file:
    file.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
statuses = json.loads(os.environ.get("XLNET_TEST_STATUS", "{}"))
sys.exit(max(statuses.get(word, 0) for word in (name, *sys.argv[1:])))
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts programs, {name: Python code}, first on the PATH, and sets variables."""
    for name in [name for name in os.environ if name.startswith("SLURM")] + ["TF_CONFIG", "RANK"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()

    def put(variables, **codes):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for name, code in codes.items():
            (tmp_path / "bin" / name).write_text(f"#!{sys.executable}\n{code}")
            (tmp_path / "bin" / name).chmod(0o755)

    return put


def calls(tmp_path):
    """The recorded calls: names and arguments."""
    return [json.loads(line) for line in (tmp_path / "bin/calls").read_text().splitlines()]
