"""Documentation and launch files follow the table of exit statuses."""

import pathlib
import re
import subprocess

import pytest
import yaml

from official.xlnet import cli, errors
from official.xlnet.commands.exit_statuses import MAX_IN_A_ROW, RESTARTS, Restart

ROOT = pathlib.Path(__file__).parents[3]
LAUNCH = ROOT / "tools/launch"
JOB = "17"


def test_the_table_has_all_statuses():
    """Of our exceptions and of the command."""
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    statuses = {getattr(each, "exit_status", 0) for each in classes}
    statuses |= {value for name, value in vars(cli).items() if name.startswith("EXIT_")}
    assert statuses <= set(RESTARTS)


def test_the_documentation_has_the_table():
    page = (ROOT / "docs/reliability.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(str(status), restart.value) for status, restart in RESTARTS.items()]


@pytest.fixture
def run_job(tmp_path, monkeypatch):
    """Runs the Slurm script, whose task ends with a status; returns whether it is queued again."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_ID", JOB)

    def run(status):
        for name, code in {"srun": f"exit {status}", "scontrol": 'echo "$@" > queued'}.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{code}\n")
            (tmp_path / name).chmod(0o755)
        done = subprocess.run([LAUNCH / "slurm.sh", "pretrain"], cwd=tmp_path, capture_output=True)
        assert done.returncode == status
        queued = tmp_path / "queued"
        is_queued = queued.exists() and queued.read_text() == f"requeue {JOB}\n"
        queued.unlink(missing_ok=True)
        assert is_queued or status < 74 or b"times in a row" in done.stderr or status in (130, 141)
        return is_queued

    return run


def test_slurm_restarts_what_is_worth_it(run_job):
    for status, restart in RESTARTS.items():
        times = [run_job(status) for _ in range(MAX_IN_A_ROW + 1)]
        expected = {
            Restart.NEVER: [False] * len(times),
            Restart.ALWAYS: [True] * len(times),
        }
        in_a_row = [number < MAX_IN_A_ROW for number in range(1, len(times) + 1)]
        assert times == expected.get(restart, in_a_row), status


def test_slurm_counts_ends_in_a_row(run_job):
    assert [run_job(status) for status in (137, 137, 75, 137, 143, 137, 137, 137)] == [
        *[True] * 7,
        False,
    ]


def test_kubernetes_restarts_what_is_worth_it():
    job = list(yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text()))[1]["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy requires it.
    assert job["backoffLimit"] == MAX_IN_A_ROW - 1
    evicted, *rules = job["podFailurePolicy"]["rules"]
    assert evicted == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    actions = {}
    for rule in rules:
        codes = rule["onExitCodes"]
        assert (codes["containerName"], codes["operator"]) == (container["name"], "In")
        actions |= dict.fromkeys(codes["values"], rule["action"])
    expected = {
        Restart.NEVER: "FailJob",
        Restart.ALWAYS: "Ignore",
        Restart.LIMITED: "Count",
        Restart.WITH_LOST_WORKER: "Ignore",
    }
    for status, restart in RESTARTS.items():
        if status:
            assert actions.get(status, "Count") == expected[restart], status
