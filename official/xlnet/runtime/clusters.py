"""The cluster of `--strategy=multi_worker`: its workers by their variables, and where they meet.

TensorFlow's own wait for the workers of a cluster says nothing and cannot be interrupted. So the
workers meet before TensorFlow starts: each of them connects to the first one, which knows who is
missing and tells all, until it sends every one the addresses of the cluster.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import sys
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.errors import ConfigError, PeerLostError
from official.xlnet.runtime.progress import Progress

# Jobs that share a node need ports of their own. Each job has TASKS_ON_A_NODE of them.
FIRST_PORT, NUM_PORTS, TASKS_ON_A_NODE = 20000, 10000, 16
SAY_SECONDS = 30.0
_PAUSE_SECONDS = 1.0
_ANSWER_SECONDS = 10.0  # A worker that says nothing for so long is not met.
_LONGEST_LINE = 1 << 20

_RANKS = ("RANK", "JOB_COMPLETION_INDEX")  # Of torchrun, and of an indexed Job of Kubernetes.


def find_cluster(
    num_gpus: int, timeout_seconds: float = CLUSTER_TIMEOUT
) -> tf.distribute.cluster_resolver.ClusterResolver:
    """The cluster that this process is a worker of, once all of its workers are there.

    It is the cluster of TF_CONFIG; or of the variables WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    RANK, as torchrun sets them, with JOB_COMPLETION_INDEX in place of the last in a Job of
    Kubernetes; or the one of all tasks of a Slurm job step.

    Args:
      num_gpus: number of GPUs that this process sees; of those, a process of torchrun uses one if
        there are several processes on its host.
      timeout_seconds: longest wait for the other workers, in seconds.

    Raises:
      ConfigError: there is no cluster, or its variables contradict each other.
      PeerLostError: a worker did not come in time.
    """
    try:
        index, given = _from_environment()
    except KeyError as error:
        raise ConfigError(
            f"strategy: multi_worker expected the variable {error}, got none"
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"strategy: multi_worker cannot use this cluster: {error}") from None
    if not 0 <= index < len(given):
        raise ConfigError(
            "strategy: multi_worker expected a cluster, in TF_CONFIG, by srun or by torchrun, got "
            f"worker {index} of {len(given)} (docs/distributed.md)"
        )
    addresses = meet(index, given, timeout_seconds)
    if "" in given and num_gpus and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1:
        own = tf.config.list_physical_devices("GPU")[int(os.environ["LOCAL_RANK"])]
        tf.config.set_visible_devices(own, "GPU")
        num_gpus = 1
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": addresses}),
        task_type="worker",
        task_id=index,
        num_accelerators={"GPU": num_gpus},
        rpc_layer="grpc",
    )


def _from_environment() -> tuple[int, list[str]]:
    """Number of this worker, a chief the first; and the addresses of all, empty where unknown."""
    environment = os.environ
    if "TF_CONFIG" in environment:
        given = json.loads(environment["TF_CONFIG"])
        cluster, task = given.get("cluster", {}), given.get("task", {})
        chiefs, workers = cluster.get("chief", []), cluster.get("worker", [])
        before = len(chiefs) if task.get("type") == "worker" else 0
        return before + int(task.get("index", 0)), [*chiefs, *workers]
    ranks = [environment[name] for name in _RANKS if name in environment]
    if ranks and "WORLD_SIZE" in environment:
        port = int(environment["MASTER_PORT"]) + 1  # torchrun itself listens at MASTER_PORT.
        others = [""] * (int(environment["WORLD_SIZE"]) - 1)
        return int(ranks[0]), [f"{environment['MASTER_ADDR']}:{port}", *others]
    return _slurm_step() if "SLURM_STEP_NODELIST" in environment else (0, [])


def _slurm_step() -> tuple[int, list[str]]:
    nodes = host_names(os.environ["SLURM_STEP_NODELIST"])
    port = FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) * TASKS_ON_A_NODE % NUM_PORTS
    tasks = re.findall(r"(\d+)(?:\(x(\d+)\))?", os.environ["SLURM_STEP_TASKS_PER_NODE"])
    sizes = [int(number) for number, times in tasks for _ in range(int(times or 1))]
    addresses = [
        f"{node}:{port + local}"
        for node, size in zip(nodes, sizes, strict=True)
        for local in range(size)
    ]
    if len(addresses) != int(os.environ["SLURM_STEP_NUM_TASKS"]):
        raise ValueError(
            f"expected {os.environ['SLURM_STEP_NUM_TASKS']} tasks, got {len(addresses)} in "
            "SLURM_STEP_TASKS_PER_NODE"
        )
    # Not by the rank, which goes round the nodes with --distribution=cyclic.
    own = f"{os.environ['SLURMD_NODENAME']}:{port + int(os.environ['SLURM_LOCALID'])}"
    return addresses.index(own), addresses


def host_names(text: str) -> list[str]:
    """The hosts of a list as Slurm writes it, in order.

    Example:
      >>> host_names("r[1-2]n[09-10],m5")
      ['r1n09', 'r1n10', 'r2n09', 'r2n10', 'm5']
    """
    names: list[str] = []
    for host in re.findall(r"(?:\[[^\]]*\]|[^,\[\]])+", text):
        parts = [
            [number for each in part[1:-1].split(",") for number in _numbers(each)]
            if part.startswith("[")
            else [part]
            for part in re.findall(r"\[[^\]]*\]|[^\[\]]+", host)
        ]
        names += map("".join, itertools.product(*parts))
    return names


def _numbers(numbers: str) -> list[str]:
    first, _, last = numbers.partition("-")
    return [f"{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]


def meet(index: int, addresses: Sequence[str], timeout_seconds: float) -> list[str]:
    """Waits until all workers of a cluster have called this function.

    Args:
      index: number of this worker, from 0.
      addresses: `host:port` of all workers, in the same order on all of them; empty for workers
        other than the first that find a free port for themselves.
      timeout_seconds: longest wait, in seconds.

    Returns:
      The addresses of all workers, none of them empty.

    Raises:
      ConfigError: the port of this worker is taken.
      PeerLostError: a worker did not come in time.
    """
    if len(addresses) == 1:
        return [*addresses]
    wait = _Wait(addresses, timeout_seconds)
    port = int(addresses[index].rpartition(":")[2] or 0)
    has_both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if has_both else socket.AF_INET
    try:
        server = socket.create_server(("", port), family=family, dualstack_ipv6=has_both)
    except OSError as error:
        raise ConfigError(
            f"workers: expected port {port} of this host, of worker {index}, to be free, got: "
            f"{error.strerror}"
        ) from None
    with server:
        if index == 0:
            return _gather(server, wait)
        port = server.getsockname()[1]  # Kept until TensorFlow listens there.
        return _join({"cluster": [*addresses], "index": index, "port": port}, wait)


class _Wait:
    """A wait for workers that says whom it waits for, and has an end."""

    def __init__(self, addresses: Sequence[str], limit_seconds: float):
        self.addresses = [*addresses]
        self._limit, self._start, self._said = limit_seconds, time.monotonic(), 0.0

    def name(self, index: int) -> str:
        """Worker, its number and its address, if that is known."""
        address = self.addresses[index]
        return f"worker {index} of {len(self.addresses)}" + (f" ({address})" if address else "")

    def go_on(self, missing: str, why: str = "") -> None:
        """Reports missing workers every half minute; raises `PeerLostError` after the limit."""
        waited = time.monotonic() - self._start
        if waited > self._limit:
            raise PeerLostError(
                f"workers: expected all of them within {self._limit:.0f} s (--cluster_timeout), "
                f"got none of {missing}{why}; run the same command on all of them"
            )
        if waited - self._said >= SAY_SECONDS:
            self._said = waited
            Progress(sys.stderr).keep(f"waiting for {missing}, {waited:.0f} s{why}")


def _gather(server: socket.socket, wait: _Wait) -> list[str]:
    """Accepts the other workers, on the first one, until none is missing."""
    present: dict[int, socket.socket] = {}
    addresses, number = [*wait.addresses], len(wait.addresses)
    server.settimeout(_PAUSE_SECONDS)
    missing = "some"
    with contextlib.ExitStack() as stack:
        while missing:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                connection, (host, *_) = server.accept()
                stack.callback(connection.close)
                connection.settimeout(_ANSWER_SECONDS)
                other = json.loads(connection.makefile("rb").readline(_LONGEST_LINE))
                if other["cluster"] == wait.addresses and 0 < other["index"] < number:
                    present[other["index"]] = connection
                    if not wait.addresses[other["index"]]:
                        host = host.removeprefix("::ffff:")
                        addresses[other["index"]] = f"{host}:{other['port']}"
            missing = ", ".join(wait.name(n) for n in range(1, number) if n not in present)
            for n in [n for n in present if not _is_alive(present[n], missing)]:
                present.pop(n).close()
                missing = missing or wait.name(n)
            if missing:
                wait.go_on(missing)
        for connection in present.values():
            with contextlib.suppress(OSError):
                connection.sendall(json.dumps({"addresses": addresses}).encode() + b"\n")
    return addresses


def _is_alive(connection: socket.socket, missing: str) -> bool:
    """Tells a worker who is missing; returns whether it answers."""
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps({"missing": missing}).encode() + b"\n")
        return connection.recv(1) == b"\n"
    return False


def _join(own: dict[str, Any], wait: _Wait) -> list[str]:
    """Registers a worker with the first one, and waits until that has met all of them."""
    host, _, port = wait.addresses[0].rpartition(":")
    place = (host.strip("[]"), int(port))
    while True:
        why = ""
        try:
            with socket.create_connection(place, _ANSWER_SECONDS) as connection:
                connection.sendall(json.dumps(own).encode() + b"\n")
                for line in connection.makefile("rb"):
                    answer = json.loads(line)
                    if "addresses" in answer:
                        return answer["addresses"]
                    connection.sendall(b"\n")
                    if answer["missing"]:
                        wait.go_on(answer["missing"])
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
        ) as error:  # Not there yet, or TensorFlow's of a run that ends.
            why = f" ({error})" if isinstance(error, OSError) else ""
        wait.go_on(wait.name(0), why)
        time.sleep(_PAUSE_SECONDS)
