"""The cluster of a worker, from the variables that its scheduler sets, and the workers' meeting."""

import concurrent.futures
import json
import os
import socket
import time

import pytest

from official.xlnet.errors import ConfigError, PeerLostError
from official.xlnet.runtime import clusters
from official.xlnet.runtime.clusters import find_cluster, host_names, meet
from tests.helpers.compare import assert_refused
from tests.helpers.replicas.clusters import free_ports

JOB = 60123
PORT = 20000 + 60123 * 16 % 10000


@pytest.fixture
def variables(monkeypatch):
    """Sets the environment of a worker, {name: value}, None for none; no worker is waited for."""
    monkeypatch.setattr(clusters, "meet", lambda index, addresses, _: addresses)
    known = {}

    def set_variables(**values):
        known.update(values)
        given = {name: str(value) for name, value in known.items() if value is not None}
        monkeypatch.setattr(os, "environ", given)

    return set_variables


@pytest.fixture
def step(variables):
    """Sets the environment of a task of Slurm."""

    def set_step(nodes, tasks, node, local=0, **changes):
        variables(
            **{"SLURM_JOB_ID": JOB, "SLURM_STEP_NODELIST": nodes, "SLURMD_NODENAME": node},
            SLURM_STEP_NUM_TASKS=sum(tasks),
            SLURM_STEP_TASKS_PER_NODE=",".join(map(str, tasks)),
            SLURM_LOCALID=local,
        )
        variables(**changes)

    return set_step


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", "n1"),
        ("n[2,5,10]", "n2 n5 n10"),
        ("a1,b[07-09,12]", "a1 b07 b08 b09 b12"),
        ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
        ("r[1-2]n[09-10]-ib,gpu[3].x", "r1n09-ib r1n10-ib r2n09-ib r2n10-ib gpu3.x"),
    ],
)
def test_lists_of_hosts(text, names):
    """As `scontrol show hostnames` prints them."""
    assert host_names(text) == names.split()


@pytest.mark.parametrize(
    ("nodes", "tasks", "places"),
    [
        ("n[2,5,10]", [1, 1, 1], [("n2", 0), ("n5", 0), ("n10", 0)]),
        ("a1,b7", [3, 2], [("a1", 0), ("a1", 1), ("a1", 2), ("b7", 0), ("b7", 1)]),
        ("r[1-2]n[1-2]", [1] * 4, [("r1n1", 0), ("r1n2", 0), ("r2n1", 0), ("r2n2", 0)]),
    ],
)
def test_each_task_finds_itself_among_the_nodes_and_has_a_port_of_its_own(
    step, nodes, tasks, places
):
    wanted = [f"{node}:{PORT + local}" for node, local in places]
    for rank, (node, local) in enumerate(places):
        step(nodes, tasks, node, local)
        cluster = find_cluster(num_gpus=7)
        assert cluster.cluster_spec().as_dict() == {"worker": wanted}
        assert (cluster.task_type, cluster.task_id) == ("worker", rank)
        assert cluster.num_accelerators() == {"GPU": 7} and cluster.rpc_layer == "grpc"
    if set(tasks) == {1}:
        step(nodes, tasks, nodes[:0], SLURM_STEP_TASKS_PER_NODE=f"1(x{len(tasks)})")
        assert_refused("is not in list", find_cluster, 0)


def test_jobs_of_one_node_share_no_port(step):
    """Consecutive numbers, each with as many tasks as a node has GPUs."""
    seen = []
    for job in range(JOB, JOB + 50):
        for local in range(8):
            step("n1", [8], "n1", local, SLURM_JOB_ID=job)
            cluster = find_cluster(0)
            seen.append(cluster.cluster_spec().as_dict()["worker"][cluster.task_id])
    assert len(set(seen)) == len(seen) == 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"SLURMD_NODENAME": "n9"}, "cannot use this cluster: .*n9:21968"),
        ({"SLURM_STEP_NUM_TASKS": "2"}, "cannot use this cluster: expected 2 tasks, got 1"),
        ({"SLURM_STEP_NODELIST": "n[1-x]"}, "cannot use this cluster: invalid literal"),
        ({"SLURM_LOCALID": None}, "expected the variable 'SLURM_LOCALID', got none"),
        ({"SLURM_STEP_NODELIST": None}, "multi_worker expected a cluster, .*got worker 0 of 0"),
        ({"TF_CONFIG": "{}"}, "multi_worker expected a cluster, .*got worker 0 of 0"),
        ({"TF_CONFIG": "{"}, "cannot use this cluster: Expecting"),
        ({"TF_CONFIG": "[]"}, "cannot use this cluster: 'list' object"),
        ({"RANK": 4, "WORLD_SIZE": 4}, "expected the variable 'MASTER_PORT', got none"),
        (
            {"RANK": 4, "WORLD_SIZE": 4, "MASTER_ADDR": "a", "MASTER_PORT": 5},
            "multi_worker expected a cluster, .*got worker 4 of 4",
        ),
    ],
)
def test_an_environment_that_contradicts_itself(step, change, message):
    step("n1", [1], "n1")
    assert find_cluster(0).task_id == 0
    step("n1", [1], "n1", **change)
    assert_refused(message, find_cluster, 0)


def test_variables_of_tensorflow_torchrun_and_kubernetes(variables):
    jobs = {"chief": ["a:1"], "worker": ["b:2", "c:3"]}
    for kind, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        task = {"type": kind, "index": index}
        variables(TF_CONFIG=json.dumps({"cluster": jobs, "task": task}), RANK=1)
        cluster = find_cluster(0)
        assert cluster.cluster_spec().as_dict() == {"worker": ["a:1", "b:2", "c:3"]}
        assert cluster.task_id == index + (kind == "worker")
    variables(TF_CONFIG=None, RANK=None, WORLD_SIZE=3, MASTER_ADDR="xlnet-0.xlnet")
    variables(MASTER_PORT=2221, LOCAL_WORLD_SIZE=1)
    for name in ("JOB_COMPLETION_INDEX", "RANK"):  # That of torchrun counts if there are both.
        variables(**{name: 2 if name == "RANK" else 1})
        cluster = find_cluster(0)
        assert cluster.cluster_spec().as_dict() == {"worker": ["xlnet-0.xlnet:2222", "", ""]}
        assert cluster.task_id == (2 if name == "RANK" else 1)


def at_once(*calls):
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(*call) for call in calls]
        return [future.exception() or future.result() for future in futures]


@pytest.mark.parametrize("is_known", [True, False])
def test_workers_meet_in_any_order_and_whatever_else_connects(is_known):
    """TensorFlow's server of the run before, another run, and a worker that is killed."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(3)]
    given = addresses if is_known else [addresses[0], "", ""]
    place = ("127.0.0.1", int(addresses[0].rpartition(":")[2]))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        with socket.create_server(place) as before:
            workers = [pool.submit(meet, 2, given, 60)]
            connection, _ = before.accept()
            connection.sendall(b"\0\0\x06\x04\0\0\0\0\0\0\x05\0\0\x40\0\n")
            connection.close()
        workers.append(pool.submit(meet, 0, given, 60))
        time.sleep(0.5)
        for index, cluster in ((1, ["a:1", "b:1"]), (7, given), (1, given)):
            with socket.create_connection(place) as connection:
                line = json.dumps({"cluster": cluster, "index": index, "port": 9})
                connection.sendall(line.encode() + b"\n")
                time.sleep(0.5)
        time.sleep(2)
        workers.append(pool.submit(meet, 1, given, 60))
        found, *others = [worker.result(60) for worker in workers]
    assert others == [found, found]
    assert found == addresses or not is_known
    hosts, ports = zip(*(address.split(":") for address in found), strict=True)
    assert set(hosts) == {"127.0.0.1"} and len({*ports, "9"}) == 4


def test_a_wait_has_words_and_an_end(monkeypatch, capfd):
    monkeypatch.setattr(clusters, "SAY_SECONDS", 1.0)
    first, second, third = (f"127.0.0.1:{port}" for port in free_ports(3))
    for error in at_once(*((meet, n, [first, second, third], 3) for n in (0, 1))):
        assert isinstance(error, PeerLostError) and error.exit_status == 76
        assert f"within 3 s (--cluster_timeout), got none of worker 2 of 3 ({third})" in str(error)
    assert f"waiting for worker 2 of 3 ({third}), 1 s" in capfd.readouterr().err
    with pytest.raises(PeerLostError, match=r"none of worker 0 of 2 \(no.such.host:7\) \(.*known"):
        meet(1, ["no.such.host:7", second], 1)
    with (
        socket.create_server(("", int(first.rpartition(":")[2]))),
        pytest.raises(ConfigError, match="of this host, of worker 0, to be free"),
    ):
        meet(0, [first, second], 1)
