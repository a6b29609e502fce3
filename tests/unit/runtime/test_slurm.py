"""The cluster of a Slurm job step, from the variables that srun sets."""

import pytest

from official.xlnet.errors import ConfigError
from official.xlnet.runtime.slurm import is_slurm_step, slurm_cluster

JOB = 60123  # Port 20000 + 60123 % 10000 = 20123.


@pytest.fixture
def step(monkeypatch):
    """Sets the environment of a task."""

    def set_environment(**variables):
        for name, value in {"SLURM_JOB_ID": JOB, **variables}.items():
            monkeypatch.setenv(name, str(value))

    monkeypatch.delenv("TF_CONFIG", raising=False)
    return set_environment


def test_each_task_finds_itself_among_the_nodes(step):
    """Slurm counts n2 before n10; TensorFlow sorts n10 before n2."""
    nodes = ["n2", "n5", "n10"]
    indices = []
    for rank, node in enumerate(nodes):
        step(
            SLURM_STEP_NODELIST="n[2,5,10]",
            SLURM_STEP_NUM_TASKS=3,
            SLURM_STEP_TASKS_PER_NODE="1(x3)",
            SLURM_PROCID=rank,
            SLURM_LOCALID=0,
            SLURMD_NODENAME=node,
        )
        assert is_slurm_step()
        cluster = slurm_cluster(num_gpus=7)
        workers = cluster.cluster_spec().as_dict()["worker"]
        assert sorted(workers) == sorted(f"{name}:20123" for name in nodes)
        assert (cluster.task_type, workers[cluster.task_id]) == ("worker", f"{node}:20123")
        assert cluster.num_accelerators() == {"GPU": 7} and cluster.rpc_layer == "grpc"
        indices.append(cluster.task_id)
    assert sorted(indices) == [0, 1, 2]


def test_tasks_that_share_a_node_have_their_own_ports(step):
    found = []
    for rank, (node, local) in enumerate([("a1", 0), ("a1", 1), ("a1", 2), ("b7", 0), ("b7", 1)]):
        step(
            SLURM_STEP_NODELIST="a1,b7",
            SLURM_STEP_NUM_TASKS=5,
            SLURM_STEP_TASKS_PER_NODE="3,2",
            SLURM_PROCID=rank,
            SLURM_LOCALID=local,
            SLURMD_NODENAME=node,
        )
        cluster = slurm_cluster(num_gpus=0)
        found.append(cluster.cluster_spec().as_dict()["worker"][cluster.task_id])
    assert found == ["a1:20123", "a1:20124", "a1:20125", "b7:20123", "b7:20124"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURMD_NODENAME": "n9"}, "cannot use this Slurm step: .*n9:20123"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "cannot use this Slurm step: Requested 2 tasks"),
        ({"SLURM_LOCALID": None}, "expected the environment of srun, got none of 'SLURM_LOCALID'"),
    ],
)
def test_an_environment_that_contradicts_itself(step, monkeypatch, change, message):
    step(
        SLURM_STEP_NODELIST="n1",
        SLURM_STEP_NUM_TASKS=1,
        SLURM_STEP_TASKS_PER_NODE="1",
        SLURM_PROCID=0,
        SLURM_LOCALID=0,
        SLURMD_NODENAME="n1",
    )
    assert slurm_cluster(0).task_id == 0
    for name, value in change.items():
        monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message):
        slurm_cluster(0)
