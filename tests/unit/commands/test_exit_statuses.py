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


@pytest.fixture
def job():
    return list(yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text()))[1]["spec"]


def action_of(job, status, is_evicted=False):
    """What Kubernetes does about a pod that has ended: the first rule that applies."""
    (container,) = job["template"]["spec"]["containers"]
    for rule in job["podFailurePolicy"]["rules"]:
        if "onPodConditions" in rule:
            assert rule["onPodConditions"] == [{"type": "DisruptionTarget"}]
            applies = is_evicted
        else:
            codes = rule["onExitCodes"]
            assert (codes["containerName"], codes["operator"]) == (container["name"], "In")
            applies = status in codes["values"]
        if applies:
            return rule["action"]
    return "Count"


def num_starts(job, rounds):
    """How often Kubernetes starts the pods of a Job, which end with the statuses of each round."""
    counts = [0] * job["completions"]
    for number, statuses in enumerate(rounds, 1):
        for index, status in enumerate(statuses):
            if status is None:
                action = action_of(job, 137, is_evicted=True)
            else:
                action = action_of(job, status)
            if action == "FailJob":
                return number
            counts[index] += action == "Count"
        failed = [count > job["backoffLimitPerIndex"] for count in counts]
        if sum(failed) > job["maxFailedIndexes"]:
            return number
    return len(rounds) + 1


def test_kubernetes_restarts_what_is_worth_it(job):
    assert job["template"]["spec"]["restartPolicy"] == "Never"  # podFailurePolicy requires it.
    assert job["completionMode"] == "Indexed"  # Counts of each pod require it.
    assert "backoffLimit" not in job  # It would count the pods of one end together.
    for status, restart in RESTARTS.items():
        if status:
            starts = num_starts(job, [[status] * job["completions"]] * 9)
            expected = {Restart.NEVER: 1, Restart.ALWAYS: 10}
            assert starts == expected.get(restart, MAX_IN_A_ROW), status


def test_kubernetes_counts_a_kill_once_for_each_pod(job):
    """The pods that have lost a killed one end with 76; an evicted one has no status."""
    assert num_starts(job, [[137, 76]] * 9) == MAX_IN_A_ROW
    assert num_starts(job, [[76, 137], [142, 139], [75, 75], [143, 76]]) == 4
    assert num_starts(job, [[75, None]] * 9) == 10
    assert num_starts(job, [[76, 137], [76, 2]]) == 2
