"""Launch files: syntax, schema, and dry runs with the environment of Kubernetes and Slurm."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import yaml

from benchmarks.data.random_records import write_data_set
from official.xlnet.commands import pretrain
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.runtime.history import read_history
from official.xlnet.training import pretraining
from tests.helpers.replicas.clusters import finish, free_ports, start_process

pytestmark = pytest.mark.slow

LAUNCH = pathlib.Path(__file__).parents[2] / "tools/launch"
STEPS = 5
CONFIG = {
    "model": {
        "vocab_size": 97,
        "num_layers": 1,
        "d_model": 22,
        "num_heads": 2,
        "d_inner": 29,
        "mem_len": 7,
        "dropout": 0.0,
        "dropatt": 0.0,
    },
    "data": {"seq_len": 19, "reuse_len": 7, "num_predict": 3, "num_lanes": 8},
    "training": {"batch_size": 8, "num_steps": STEPS, "warmup_steps": 0},
}

# Records its arguments and TF_CONFIG as a line of the file XLNET_TEST_CALLS.
RECORDING = """
import json, os, sys
with open(os.environ["XLNET_TEST_CALLS"], "a") as file:
    call = {"name": os.path.basename(sys.argv[0]), "arguments": sys.argv[1:]}
    file.write(json.dumps({**call, "TF_CONFIG": os.environ.get("TF_CONFIG")}) + "\\n")
sys.exit(int(os.environ.get("XLNET_TEST_STATUS_" + call["name"], "0")))
"""
# `xlnet`, with other names for hosts and folders.
TRAINING = """
import json, os, sys
names = json.loads(os.environ["XLNET_TEST_NAMES"])
def local(text):
    for name, ours in names.items():
        text = text.replace(name, ours)
    return text
if "TF_CONFIG" in os.environ:
    os.environ["TF_CONFIG"] = local(os.environ["TF_CONFIG"])
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


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts programs, {name: Python code}, first on the PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    monkeypatch.setenv("XLNET_TEST_CALLS", str(tmp_path / "calls"))
    for name in list(os.environ):
        if name.startswith("SLURM") or name == "TF_CONFIG":
            monkeypatch.delenv(name)

    def put(**codes):
        for name, code in codes.items():
            (directory / name).write_text(f"#!{sys.executable}\n{code}")
            (directory / name).chmod(0o755)

    return put


@pytest.fixture
def calls(tmp_path):
    """Reads the recorded calls."""
    path = tmp_path / "calls"
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def documents():
    service, job = yaml.safe_load_all((LAUNCH / "kubernetes.yaml").read_text())
    return service, job, job["spec"]["template"]["spec"]


def pod_command():
    (container,) = documents()[2]["containers"]
    return [*container["command"], *container["args"]], container


def pod_environment(index):
    """The environment of pod `index`: that of the file, and what Kubernetes adds."""
    variables = {each["name"]: each["value"] for each in pod_command()[1]["env"]}
    return {**os.environ, **variables, "JOB_COMPLETION_INDEX": str(index)}


def closed(required=(), **properties):
    """JSON schema of an object with no other keys."""
    tree = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**tree, "required": [*required]}


TEXT, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
CONTAINER = closed(
    ("name", "image"),
    name=TEXT,
    image=TEXT,
    command={"type": "array", "items": TEXT},
    args={"type": "array", "items": TEXT},
    env={"type": "array", "items": closed(("name", "value"), name=TEXT, value=TEXT)},
    ports={"type": "array", "items": closed(("containerPort",), containerPort=NUMBER)},
    resources=closed((), limits={"type": "object"}, requests={"type": "object"}),
    volumeMounts={
        "type": "array",
        "items": closed(("name", "mountPath"), name=TEXT, mountPath=TEXT),
    },
)
POD = closed(
    ("containers", "restartPolicy"),
    subdomain=TEXT,
    restartPolicy={"enum": ["OnFailure", "Never"]},
    terminationGracePeriodSeconds=NUMBER,
    containers={"type": "array", "items": CONTAINER, "minItems": 1},
    volumes={
        "type": "array",
        "items": closed(
            ("name",), name=TEXT, persistentVolumeClaim=closed(("claimName",), claimName=TEXT)
        ),
    },
)
METADATA = closed(("name",), name=TEXT)
JOB = closed(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "batch/v1"},
    kind={"const": "Job"},
    metadata=METADATA,
    spec=closed(
        ("template",),
        completionMode={"enum": ["Indexed", "NonIndexed"]},
        completions=NUMBER,
        parallelism=NUMBER,
        backoffLimit={"type": "integer", "minimum": 0},
        template=closed(("spec",), spec=POD),
    ),
)
SERVICE = closed(
    ("apiVersion", "kind", "metadata", "spec"),
    apiVersion={"const": "v1"},
    kind={"const": "Service"},
    metadata=METADATA,
    spec=closed(
        ("selector",),
        clusterIP={"const": "None"},
        publishNotReadyAddresses={"type": "boolean"},
        selector={"type": "object", "additionalProperties": TEXT},
        ports={"type": "array", "items": closed(("port",), port=NUMBER)},
    ),
)


def test_kubernetes_objects_follow_their_schema():
    """What this file uses of the API; a key that is not listed here is a typing error."""
    jsonschema = pytest.importorskip("jsonschema")
    service, job, _ = documents()
    jsonschema.validate(service, SERVICE)
    jsonschema.validate(job, JOB)


@pytest.mark.parametrize("index", [0, 1])
def test_pods_start_the_workers_of_one_cluster(index, programs, calls):
    programs(xlnet=RECORDING)
    subprocess.run(pod_command()[0], env=pod_environment(index), check=True)
    (call,) = calls()
    assert json.loads(call["TF_CONFIG"]) == {
        "cluster": {"worker": ["xlnet-0.xlnet:2222", "xlnet-1.xlnet:2222"]},
        "task": {"type": "worker", "index": index},
    }
    verb, *arguments = call["arguments"]
    assert verb == "pretrain"
    assert pretrain.FLAGS(["xlnet", *arguments], known_only=False) == ["xlnet"]


@pytest.mark.parametrize("status", [0, 2, 75])
def test_a_preempted_slurm_job_is_queued_again(status, programs, calls, monkeypatch):
    programs(srun=RECORDING, scontrol=RECORDING)
    monkeypatch.setenv("XLNET_TEST_STATUS_srun", str(status))
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    arguments = ["finetune", "--task=race", "--train=a b"]
    done = subprocess.run([LAUNCH / "slurm.sh", *arguments])
    assert done.returncode == status
    first, *rest = calls()
    expected = ["--kill-on-bad-exit=1", "xlnet", *arguments, "--strategy=multi_worker"]
    assert first["arguments"] == expected
    requeued = [["requeue", "17"]] if status == 75 else []
    assert [call["arguments"] for call in rest] == requeued


@pytest.mark.parametrize("exists", [False, True])
def test_the_tpu_script_creates_installs_and_starts(exists, programs, calls, monkeypatch):
    described = "0 if 'describe' not in sys.argv else " + str(int(not exists))
    programs(xlnet=RECORDING)
    gcloud = RECORDING.rpartition("sys.exit")[0] + f"sys.exit({described})\n"
    programs(gcloud=gcloud)
    for name, value in {"NAME": "a-tpu", "ZONE": "a-zone", "BUCKET": "a-bucket"}.items():
        monkeypatch.setenv(name, value)
    arguments = ["pretrain", "--config=bucket/a config.yaml", "--data=d", "--model_dir=$m"]
    subprocess.run([LAUNCH / "tpu_vm.sh", *arguments], check=True)
    made = [call["arguments"] for call in calls()]
    assert all(call[:3] == ["compute", "tpus", "tpu-vm"] for call in made)
    create = [] if exists else ["create"]
    assert [call[3] for call in made] == ["describe", *create, "scp", "ssh", "ssh"]
    assert all("--zone=a-zone" in call for call in made)
    install, start = (call[-1].removeprefix("--command=") for call in made[-2:])
    subprocess.run(["bash", "-n", "-c", install], check=True)
    assert "gcsfuse --implicit-dirs a-bucket bucket" in install
    # As the shell of the TPU VM reads it.
    subprocess.run(["bash", "-c", start], check=True)
    assert calls()[-1]["arguments"] == [*arguments, "--strategy=tpu"]


@pytest.fixture
def shared(tmp_path):
    """The folder that all workers see."""
    directory = tmp_path / "shared"
    directory.mkdir()
    (directory / "base.yaml").write_text(yaml.safe_dump(CONFIG))
    write_data_set(str(directory / "data"), 19, 7, 8, 7)
    return directory


def assert_same_run(shared):
    """Losses of the run in `model` are those of one device."""
    config = XLNetConfig.load(str(shared / "base.yaml"))
    pretraining.pretrain(config, str(shared / "data"), str(shared / "one_device"))
    found, wanted = (
        [line["loss"] for line in read_history(str(shared / name))]
        for name in ("model", "one_device")
    )
    assert len(found) == STEPS
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_dry_run_of_two_pods(programs, shared, monkeypatch):
    programs(xlnet=TRAINING)
    ports = free_ports(2)
    names = {f"xlnet-{n}.xlnet:2222": f"127.0.0.1:{port}" for n, port in enumerate(ports)}
    monkeypatch.setenv("XLNET_TEST_NAMES", json.dumps({**names, "/shared": str(shared)}))
    command, _ = pod_command()
    pods = [start_process(command, pod_environment(index)) for index in range(2)]
    assert finish(pods)["step"] == STEPS
    assert_same_run(shared)


def test_dry_run_of_a_slurm_job_with_two_tasks(programs, shared, monkeypatch):
    programs(srun=SRUN, xlnet=TRAINING)
    monkeypatch.setenv("XLNET_TEST_NAMES", "{}")
    monkeypatch.setenv("SLURM_JOB_ID", str(os.getpid()))
    paths = [f"--config={shared / 'base.yaml'}", f"--data={shared / 'data'}"]
    command = [str(LAUNCH / "slurm.sh"), "pretrain", *paths, f"--model_dir={shared / 'model'}"]
    assert finish([start_process(command, dict(os.environ))])["step"] == STEPS
    assert_same_run(shared)
