"""Launch files: what has to agree in them, and dry runs as Kubernetes and Slurm would."""

import json
import os
import pathlib
import shutil
import subprocess

import numpy as np
import pytest
import yaml

from official.xlnet.api.pretrain import pretrain
from official.xlnet.configs.experiment import XLNetConfig
from tests.helpers.replicas.clusters import finish, free_ports, start_process
from tests.helpers.replicas.recorded_programs import RECORDING, calls, programs
from tests.helpers.runs import losses_of

LAUNCH = pathlib.Path(__file__).parents[3] / "tools/launch"
STEPS = 5
__all__ = ["programs"]  # A fixture.

# `xlnet`, with other names for hosts and folders.
TRAINING = """
import json, os, sys
names = json.loads(os.environ["XLNET_TEST_NAMES"])
def local(text):
    for name, ours in names.items():
        text = text.replace(name, ours)
    return text
for name in ("MASTER_ADDR", "MASTER_PORT"):
    if name in os.environ:
        os.environ[name] = local(os.environ[name])
arguments = map(local, sys.argv[1:])
os.execv(sys.executable, [sys.executable, "-m", "official.xlnet.cli", *arguments])
"""
# `srun` with two tasks on one node.
SRUN = """
import os, subprocess, sys
command = sys.argv[next(n for n, x in enumerate(sys.argv) if n and not x.startswith("-")):]
tasks = [
    subprocess.Popen(command, env={
        **os.environ, "SLURM_STEP_NODELIST": "localhost", "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank),
        "SLURMD_NODENAME": "localhost",
    })
    for rank in range(2)
]
sys.exit(max(task.wait() for task in tasks))
"""


def kubernetes():
    """Service, Job, and the container of its pods with its environment."""
    service, job = yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text())
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return service, job, container, {each["name"]: each["value"] for each in container["env"]}


def test_kubernetes_objects_agree():
    service, job, container, environment = kubernetes()
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert {(x["apiVersion"], x["kind"]) for x in (service, job)} == {
        *(("v1", "Service"), ("batch/v1", "Job"))
    }
    assert (spec["completionMode"], pod["restartPolicy"]) == ("Indexed", "Never")
    assert spec["completions"] == spec["parallelism"] == int(environment["WORLD_SIZE"])
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"]
    assert int(environment["MASTER_PORT"]) + 1 == container["ports"][0]["containerPort"]
    names = job["metadata"]["name"], service["metadata"]["name"]
    assert environment["MASTER_ADDR"] == "{}-0.{}".format(*names)
    assert {m["name"] for m in container["volumeMounts"]} == {v["name"] for v in pod["volumes"]}


@pytest.mark.parametrize("status", [0, 1, 2, 75, 76, 137, 142])
def test_a_preempted_slurm_job_is_queued_again(status, programs, tmp_path):
    statuses = json.dumps({"srun": status})
    programs(
        {"XLNET_TEST_STATUS": statuses, "SLURM_JOB_ID": "17"}, srun=RECORDING, scontrol=RECORDING
    )
    arguments = ["finetune", "--task=race", "--train=a b"]
    assert subprocess.run([LAUNCH / "slurm.sh", *arguments], cwd=tmp_path).returncode == status
    first, *rest = calls(tmp_path)
    expected = ["srun", "--kill-on-bad-exit=1", "xlnet", *arguments, "--strategy=multi_worker"]
    assert first == expected
    assert rest == ([["scontrol", "requeue", "17"]] if status > 74 else [])


@pytest.fixture
def shared(world, tmp_path):
    """The folder of all workers; the run that they leave in it is that of one device."""
    settings = ["batch_size=4", f"num_steps={STEPS}", "dropout=0", "dropatt=0"]
    config = XLNetConfig.load(world.config, settings)
    config.save(str(tmp_path))
    (tmp_path / "config.yaml").rename(tmp_path / "base.yaml")
    shutil.copytree(world.data, tmp_path / "data")
    yield tmp_path
    pretrain(config, world.data, str(tmp_path / "alone"))
    np.testing.assert_allclose(*map(losses_of, (tmp_path / "model", tmp_path / "alone")), atol=1e-4)


@pytest.mark.nightly
def test_dry_run_of_two_pods(programs, shared):
    (port,) = free_ports(1)
    names = {"xlnet-0.xlnet": "127.0.0.1", "2221": str(port - 1), "/shared": str(shared)}
    programs({"XLNET_TEST_NAMES": json.dumps(names)}, xlnet=TRAINING)
    _, _, container, variables = kubernetes()
    pods = [
        start_process(
            [*container["command"], *container["args"]],
            {**os.environ, **variables, "JOB_COMPLETION_INDEX": str(index)},
        )
        for index in range(2)
    ]
    assert finish(pods)["step"] == STEPS


@pytest.mark.nightly
def test_dry_run_of_a_slurm_job_with_two_tasks(programs, shared, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.getcwd())
    monkeypatch.chdir(shared)  # It writes a file there.
    variables = {"XLNET_TEST_NAMES": "{}", "SLURM_JOB_ID": str(os.getpid())}
    programs(variables, srun=SRUN, xlnet=TRAINING)
    paths = [f"--config={shared / 'base.yaml'}", f"--data={shared / 'data'}"]
    command = [str(LAUNCH / "slurm.sh"), "pretrain", *paths, f"--output={shared / 'model'}"]
    assert finish([start_process(command, dict(os.environ))])["step"] == STEPS
