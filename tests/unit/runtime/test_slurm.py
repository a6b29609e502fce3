"""The cluster of a Slurm job step, from the variables that srun sets."""

import pytest

from official.xlnet.errors import ConfigError
from official.xlnet.runtime.distribution import is_slurm_step, slurm_cluster

JOB = 60123
PORT = 20000 + 60123 * 16 % 10000


@pytest.fixture
def step(monkeypatch):
    """Sets the environment of a task."""

    def set_environment(nodes, tasks, rank, node, local=0, **changes):
        variables = {
            **{"SLURM_JOB_ID": JOB, "SLURM_STEP_NODELIST": nodes, "SLURMD_NODENAME": node},
            "SLURM_STEP_NUM_TASKS": sum(tasks),
            "SLURM_STEP_TASKS_PER_NODE": ",".join(map(str, tasks)),
            **{"SLURM_PROCID": rank, "SLURM_LOCALID": local, **changes},
        }
        for name, value in variables.items():
            monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, str(value))

    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv("SLURM_LOCALID", "0")
    return set_environment


@pytest.mark.parametrize(
    ("nodes", "tasks", "places"),
    [  # Slurm counts n2 before n10; TensorFlow sorts n10 before n2.
        ("n[2,5,10]", [1, 1, 1], [("n2", 0), ("n5", 0), ("n10", 0)]),
        ("a1,b7", [3, 2], [("a1", 0), ("a1", 1), ("a1", 2), ("b7", 0), ("b7", 1)]),
    ],
)
def test_each_task_finds_itself_among_the_nodes_and_has_a_port_of_its_own(
    step, nodes, tasks, places
):
    wanted, indices = [f"{node}:{PORT + local}" for node, local in places], []
    for rank, (node, local) in enumerate(places):
        step(nodes, tasks, rank, node, local)
        assert is_slurm_step()
        cluster = slurm_cluster(num_gpus=7)
        workers = cluster.cluster_spec().as_dict()["worker"]
        assert sorted(workers) == sorted(wanted)
        assert (cluster.task_type, workers[cluster.task_id]) == ("worker", wanted[rank])
        assert cluster.num_accelerators() == {"GPU": 7} and cluster.rpc_layer == "grpc"
        indices.append(cluster.task_id)
    assert sorted(indices) == [*range(len(places))]


def test_jobs_of_one_node_share_no_port(step):
    """Consecutive numbers, each with as many tasks as a node has GPUs."""
    seen = []
    for job in range(JOB, JOB + 50):
        for local in range(8):
            step("n1", [8], local, "n1", local, SLURM_JOB_ID=job)
            cluster = slurm_cluster(0)
            seen.append(cluster.cluster_spec().as_dict()["worker"][cluster.task_id])
    assert len(set(seen)) == len(seen) == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURMD_NODENAME": "n9"}, "cannot use this Slurm step: .*n9:21968"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "cannot use this Slurm step: Requested 2 tasks"),
        ({"SLURM_LOCALID": None}, "expected the environment of srun, got none of 'SLURM_LOCALID'"),
    ],
)
def test_an_environment_that_contradicts_itself(step, change, message):
    step("n1", [1], 0, "n1")
    assert slurm_cluster(0).task_id == 0
    step("n1", [1], 0, "n1", **change)
    with pytest.raises(ConfigError, match=message):
        slurm_cluster(0)
