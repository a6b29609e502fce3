"""Workers that torchrun starts, and three tasks of Slurm: one is killed, and all are restarted."""

import os
import pathlib
import sys

import numpy as np
import psutil
import pytest

from tests.helpers.replicas.clusters import (
    finish,
    start_process,
    wait_for_step,
)
from tests.helpers.replicas.recorded_programs import RECORDING, calls, programs
from tests.helpers.runs import losses_of

__all__ = ["programs"]  # A fixture.
pytestmark = pytest.mark.nightly

STEPS = 30
SLURM_FILE = pathlib.Path(__file__).parents[3] / "tools/launch/slurm.sh"

# `srun --kill-on-bad-exit=1` with three tasks on one node.
SRUN = """
import os, subprocess, sys, time
command = sys.argv[next(n for n, x in enumerate(sys.argv) if n and not x.startswith("-")):]
tasks = [
    subprocess.Popen([sys.executable, "-m", "official.xlnet.cli", *command[1:]], env={
        **os.environ, "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_STEP_TASKS_PER_NODE": "3", "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank),
        "SLURMD_NODENAME": "localhost",
    })
    for rank in range(3)
]
while any(task.poll() is None for task in tasks):
    if any(task.poll() for task in tasks):
        for task in tasks:
            task.terminate()
        for task in tasks:
            try:
                task.wait(30)
            except subprocess.TimeoutExpired:
                task.kill()
    time.sleep(0.1)
statuses = [task.wait() for task in tasks]
sys.exit(max(128 - status if status < 0 else status for status in statuses))
"""


def workers_of(process):
    """The processes of `xlnet` that a launcher has started."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if "official.xlnet.cli" in child.cmdline()]


@pytest.mark.parametrize("lost", [0, 1])
def test_torchrun_restarts_workers_of_which_one_is_killed(recipe, undisturbed, lost, tmp_path):
    pytest.importorskip("torch")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1"]
    launcher += ["--nproc-per-node=2", "--module", "official.xlnet.cli"]
    flags = ["pretrain", f"--config={recipe}", f"--data={recipe}/data", f"--output={tmp_path}"]
    process = start_process([*launcher, *flags, "--strategy=multi_worker"], dict(os.environ))
    wait_for_step(process, tmp_path, 6)
    workers = workers_of(process)
    assert len(workers) == 2
    ranks = [int(worker.environ()["RANK"]) for worker in workers]
    workers[ranks.index(lost)].kill()
    assert finish([process])["step"] == STEPS
    np.testing.assert_allclose(losses_of(tmp_path), undisturbed, rtol=0, atol=1e-4)


def test_slurm_queues_a_job_again_of_which_a_task_is_killed(
    recipe, undisturbed, programs, tmp_path, monkeypatch
):
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    programs({"SLURM_JOB_ID": str(os.getpid())}, srun=SRUN, scontrol=RECORDING)
    monkeypatch.chdir(tmp_path)  # The script writes a file there.
    flags = [f"--config={recipe}", f"--data={recipe}/data", f"--output={tmp_path}/model"]
    command = [str(SLURM_FILE), "pretrain", *flags]
    process = start_process(command, dict(os.environ))
    wait_for_step(process, tmp_path / "model", 6)
    workers = workers_of(process)
    assert len(workers) == 3
    workers[1].kill()
    process.communicate(timeout=500)
    assert process.returncode in (137, 143)
    assert calls(tmp_path) == [["scontrol", "requeue", str(os.getpid())]]
    assert finish([start_process(command, dict(os.environ))])["step"] == STEPS
    np.testing.assert_allclose(losses_of(tmp_path / "model"), undisturbed, rtol=0, atol=1e-4)
