"""The cluster of `--strategy=multi_worker`: its workers by their variables, and where they meet.

TensorFlow's own wait for the workers of a cluster says nothing and cannot be interrupted. So the
workers meet before TensorFlow starts: each of them connects to the first one, which knows who is
missing and tells all, until it sends every one the addresses of the cluster. Lists of workers that
differ end both sides at once. As they may name different first workers, the first one also calls
each of the others once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

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
        _ = [int(address.rpartition(":")[2]) for address in given if address]
    except KeyError as error:
        raise ConfigError(
            f"strategy: multi_worker expected the variable {error}, got none"
        ) from None
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
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
        jobs = {name: [*cluster.get(name, [])] for name in ("chief", "worker")}
        kind, index = task.get("type"), int(task.get("index", -1))
        if not 0 <= index < len(jobs.get(kind, [])):
            raise ValueError(
                "expected a task of the type chief or worker in TF_CONFIG, with its index in that "
                f"list, got the type {kind!r} and the index {task.get('index')!r}"
            )
        return index + (kind == "worker") * len(jobs["chief"]), jobs["chief"] + jobs["worker"]
    ranks = [environment[name] for name in _RANKS if name in environment]
    if ranks and "WORLD_SIZE" in environment:
        port = int(environment["MASTER_PORT"]) + 1  # torchrun itself listens at MASTER_PORT.
        others = [""] * (int(environment["WORLD_SIZE"]) - 1)
        return int(ranks[0]), [f"{environment['MASTER_ADDR']}:{port}", *others]
    return _slurm_step() if "SLURM_STEP_NODELIST" in environment else (0, [])


def _slurm_step() -> tuple[int, list[str]]:
    port = FIRST_PORT + int(os.environ["SLURM_JOB_ID"]) * TASKS_ON_A_NODE % NUM_PORTS
    # By default TensorFlow asks nvidia-smi for GPUs, and lists no task where there are none.
    step = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port, gpus_per_node=NUM_PORTS, gpus_per_task=1, auto_set_gpu=False
    )
    addresses = step.cluster_spec().as_dict()["worker"]
    # Not by the rank: TensorFlow sorts the nodes by name, and --distribution=cyclic goes round.
    own = f"{os.environ['SLURMD_NODENAME']}:{port + int(os.environ['SLURM_LOCALID'])}"
    return addresses.index(own), addresses


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
      ConfigError: the port of this worker is taken, or another worker has another list.
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
        server.settimeout(_PAUSE_SECONDS)
        # A free port is kept until TensorFlow listens there.
        own = _Worker([*addresses], index, server.getsockname()[1])
        return (_join if index else _gather)(server, own, wait)


class _Worker(NamedTuple):
    """Introduction of a worker: its list of all workers, its place there, and its port."""

    cluster: list[str]
    number: int
    port: int


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
            Progress(sys.stderr).log_line(f"waiting for {missing}, {waited:.0f} s{why}")


def _gather(server: socket.socket, own: _Worker, wait: _Wait) -> list[str]:
    """Accepts the other workers, on the first one, until none is missing."""
    present: dict[int, socket.socket] = {}
    addresses, absent = [*own.cluster], [*range(1, len(own.cluster))]
    calls = filter(None, own.cluster[1:])
    with contextlib.ExitStack() as stack:
        try:
            while absent:
                met = _accept(server, own, stack)
                if met and met[0] in range(1, len(addresses)):
                    number, address, present[number] = met
                    addresses[number] = own.cluster[number] or address
                absent = [n for n in range(1, len(addresses)) if n not in present]
                missing = ", ".join(map(wait.name, absent))
                for n in [n for n in present if not _is_alive(present[n], missing)]:
                    present.pop(n).close()
                    absent.append(n)
                if absent:
                    wait.go_on(", ".join(map(wait.name, absent)))
                    for address in itertools.islice(calls, 1):
                        _call(address, own)
        except ConfigError as error:
            _tell(present.values(), error=str(error))
            raise
        _tell(present.values(), addresses=addresses)
    return addresses


def _accept(
    server: socket.socket, own: _Worker, stack: contextlib.ExitStack
) -> tuple[int, str, socket.socket] | None:
    """Number, address and connection of a worker that connects; None if none does in time.

    Raises:
      ConfigError: it has another list of workers, and has been told so.
    """
    try:
        connection, (host, *_) = server.accept()
        stack.callback(connection.close)
        connection.settimeout(_ANSWER_SECONDS)
        other = _Worker(**_message(connection))
        pairs = enumerate(itertools.zip_longest(other.cluster, own.cluster))
        different = [(n, theirs, ours) for n, (theirs, ours) in pairs if theirs != ours]
    except (OSError, TypeError):
        return None
    for n, theirs, ours in different[:1]:
        error = (
            f"workers: expected the same list on all of them, got {theirs!r} as worker {n} in the "
            f"list of worker {other.number} of {len(other.cluster)}, and {ours!r} in the list of "
            f"worker {own.number} of {len(own.cluster)}"
        )
        _tell([connection], error=error)
        raise ConfigError(error)
    return other.number, f"{host.removeprefix('::ffff:')}:{other.port}", connection


def _is_alive(connection: socket.socket, missing: str) -> bool:
    """Tells a worker who is missing; returns whether it answers."""
    _tell([connection], missing=missing)
    with contextlib.suppress(OSError):
        return connection.recv(1) == b"\n"
    return False


def _join(server: socket.socket, own: _Worker, wait: _Wait) -> list[str]:
    """Registers a worker with the first one, and waits until that has met all of them."""
    while True:
        why = ""
        try:
            with _connected(own.cluster[0], own, _ANSWER_SECONDS) as connection:
                while ready := select.select([connection, server], [], [], _ANSWER_SECONDS)[0]:
                    if server in ready:
                        with contextlib.ExitStack() as stack:
                            _accept(server, own, stack)
                        continue
                    answer = _message(connection)
                    if "addresses" in answer:
                        return answer["addresses"]
                    missing = answer["missing"]
                    connection.sendall(b"\n")
                    if missing:
                        wait.go_on(missing)
        except (OSError, KeyError) as error:  # Not there yet, or TensorFlow's of a run that ends.
            why = f" ({error})" if isinstance(error, OSError) else ""
        wait.go_on(wait.name(0), why)
        with contextlib.ExitStack() as stack:
            _accept(server, own, stack)


def _call(address: str, own: _Worker) -> None:
    """Hears of a worker that waits for others whether its list is another one."""
    with contextlib.suppress(OSError), _connected(address, own, _PAUSE_SECONDS) as connection:
        _message(connection)


def _connected(address: str, own: _Worker, timeout_seconds: float) -> socket.socket:
    """A connection to a worker, which has got the introduction of this one."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), timeout_seconds)
    _tell([connection], **own._asdict())
    return connection


def _tell(connections: Iterable[socket.socket], **message: Any) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(message).encode() + b"\n")


def _message(connection: socket.socket) -> dict[str, Any]:
    """The next message of a worker; empty for whatever else answers.

    Raises:
      ConfigError: the other worker has another list than this one.
      OSError: nothing comes.
    """
    line = connection.makefile("rb").readline(_LONGEST_LINE)
    try:
        message = dict(json.loads(line))
    except (TypeError, ValueError):
        return {}
    if "error" in message:
        raise ConfigError(message["error"])
    return message
