"""The cluster of a worker, from the variables that its scheduler sets, and the workers' meeting."""

import concurrent.futures
import json
import os
import random
import socket
import time

import pytest

from official.xlnet.errors import ConfigError, PeerLostError
from official.xlnet.projects.clusters import environment, rendezvous
from official.xlnet.projects.clusters.environment import find_cluster
from official.xlnet.projects.clusters.rendezvous import meet
from tests.helpers.compare import assert_refused
from tests.helpers.replicas.clusters import free_ports

JOB = 60123
PORT = 20000 + 60123 * 16 % 10000


@pytest.fixture
def variables(monkeypatch):
    """Sets the environment of a worker, {name: value}, None for none; no worker is waited for."""
    monkeypatch.setattr(environment, "meet", lambda index, addresses, _: addresses)
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
            SLURM_PROCID=0,
        )
        variables(**changes)

    return set_step


@pytest.mark.parametrize(
    ("nodes", "tasks", "places"),
    [
        ("n[2,5,10]", [1, 1, 1], [("n10", 0), ("n2", 0), ("n5", 0)]),
        ("a1,b7", [3, 2], [("a1", 0), ("a1", 1), ("a1", 2), ("b7", 0), ("b7", 1)]),
        ("r1n[09-10],m5", [1] * 3, [("m5", 0), ("r1n09", 0), ("r1n10", 0)]),
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
        ({"SLURM_STEP_NUM_TASKS": "2"}, "cannot use this cluster: Requested 2 tasks but only 1"),
        ({"SLURM_STEP_NODELIST": "n[1-x]"}, "cannot use this cluster: Invalid hostlist"),
        ({"SLURM_STEP_NODELIST": "n[1-2]x"}, "cannot use this cluster: Invalid hostlist"),
        ({"SLURM_PROCID": None}, "cannot use this cluster: SLURM_PROCID not found"),
        ({"SLURM_LOCALID": None}, "expected the variable 'SLURM_LOCALID', got none"),
        ({"SLURM_STEP_NODELIST": None}, "multi_worker expected a cluster, .*got worker 0 of 0"),
        ({"TF_CONFIG": "{}"}, "expected a task of the type chief or worker .*got the type None"),
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
    task = {"type": "worker", "index": 1}
    for change in (
        *(
            {"type": kind}
            for kind in ("evaluator", "ps", "Worker", "workers", "", None, ["worker"])
        ),
        *({"index": index} for index in (-1, 2, None, "x")),
    ):
        wrong = {**task, **change}
        for given in (wrong, {key: x for key, x in wrong.items() if key not in change}):
            variables(TF_CONFIG=json.dumps({"cluster": {**jobs, "ps": ["d:4"]}, "task": given}))
            assert_refused(r"multi_worker cannot use this cluster: ", find_cluster, 0)
    variables(TF_CONFIG=json.dumps({"cluster": {"worker": ["b", "c"]}, "task": task}))
    assert_refused("multi_worker cannot use this cluster: ", find_cluster, 0)
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
        introduction = {"cluster": given, "number": 1, "port": 9}
        for said in (7, [], {"cluster": given}, {**introduction, "number": 7}, introduction):
            with socket.create_connection(place) as connection:
                connection.sendall(json.dumps(said).encode() + b"\n")
                time.sleep(0.5)
        time.sleep(2)
        workers.append(pool.submit(meet, 1, given, 60))
        found, *others = [worker.result(60) for worker in workers]
    assert others == [found, found]
    assert found == addresses or not is_known
    hosts, ports = zip(*(address.split(":") for address in found), strict=True)
    assert set(hosts) == {"127.0.0.1"} and len({*ports, "9"}) == 4


def test_a_wait_has_words_and_an_end(monkeypatch, capfd):
    monkeypatch.setattr(rendezvous, "LOG_SECONDS", 1.0)
    first, second, third = (f"127.0.0.1:{port}" for port in free_ports(3))
    for error in at_once(*((meet, n, [first, second, third], 3) for n in (0, 1))):
        assert isinstance(error, PeerLostError) and error.exit_status == 76
        assert f"within 3 s (--cluster_timeout), got none of worker 2 of 3 ({third})" in str(error)
    assert f"waiting for worker 2 of 3 ({third}), " in capfd.readouterr().err
    with pytest.raises(PeerLostError, match=r"none of worker 0 of 2 \(no.such.host:7\) \(.*known"):
        meet(1, ["no.such.host:7", second], 1)
    with (
        socket.create_server(("", int(first.rpartition(":")[2]))),
        pytest.raises(ConfigError, match="of this host, of worker 0, to be free"),
    ):
        meet(0, [first, second], 1)


def another_list(usual, own, random):
    """The list of workers as one of them may have it by mistake; `own` is in it in any case."""
    changed, at = [*usual], random.randrange(len(usual))
    match random.choice(["name", "order", "more", "fewer"][: 1 + len(usual)]):
        case "name":
            changed[at] = changed[at].replace("127.0.0.1", random.choice(["localhost", "127.1"]))
        case "order":
            changed[at - 1], changed[at] = changed[at], changed[at - 1]
        case "more":
            changed.insert(at, f"127.0.0.1:{free_ports(1)[0]}")
        case "fewer":
            changed.remove(random.choice([x for x in usual if x != own]))
    return changed


@pytest.mark.parametrize("seed", range(12))
def test_workers_whose_lists_differ_say_so_at_once(seed):
    """Whichever is the first in whose list; a third one may come too late to hear of it."""
    draw = random.Random(seed)
    usual = [f"127.0.0.1:{port}" for port in free_ports(draw.choice([2, 3]))]
    odd = draw.choice(usual)
    calls = []
    for own in draw.sample(usual, len(usual)):
        addresses = another_list(usual, own, draw) if own == odd else usual
        if len(addresses) > 1:  # One alone waits for nobody.
            ports = [address.rpartition(":")[2] for address in addresses]
            calls.append((meet, ports.index(own.rpartition(":")[2]), addresses, 8))
    begun = time.monotonic()
    errors = at_once(*calls)
    assert all(isinstance(error, ConfigError | PeerLostError) for error in errors), errors
    told = [str(error) for error in errors if isinstance(error, ConfigError)]
    assert all("expected the same list on all of them, got" in error for error in told)
    assert len(told) >= 2 and (time.monotonic() - begun < 7 or len(told) < len(calls))


@pytest.mark.parametrize(
    ("order", "num_told"), [pytest.param((0, 1, 2), 3, marks=pytest.mark.quick), ((1, 0, 2), 2)]
)
def test_a_late_worker_with_another_list_is_told_so_by_whichever_it_meets(order, num_told):
    """By the first, which tells all of them, or by one that has joined the first."""
    usual = [f"127.0.0.1:{port}" for port in free_ports(3)]
    late = [usual[n].replace("127.0.0.1", "localhost") for n in order]

    def meet_late():
        time.sleep(3)
        meet(2, late, 8)

    calls = [(meet, 0, usual, 8), (meet, 1, usual, 8), (meet_late,)]
    told = [isinstance(error, ConfigError) for error in at_once(*calls)]
    assert sum(told) == num_told and told[1:] == [True, True]
