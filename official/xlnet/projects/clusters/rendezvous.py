"""The rendezvous of the workers of a cluster, before TensorFlow starts.

TensorFlow's own wait for the workers of a cluster logs nothing and cannot be interrupted. So the
workers meet first: each of them connects to the first worker, which knows who is missing and tells
the others, until it sends the addresses of the whole cluster to each of them. If the lists of two
workers differ, both end at once. As the lists may name different first workers, the first one also
calls each of the others once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import select
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from official.xlnet.errors import ConfigError, PeerLostError
from official.xlnet.runtime.progress import Progress

LOG_SECONDS = 30.0  # Missing workers are logged so often.
_PAUSE_SECONDS = 1.0
_ANSWER_SECONDS = 10.0  # A worker that does not answer for so long counts as missing.
_LONGEST_LINE = 1 << 20


def meet(index: int, addresses: Sequence[str], timeout_seconds: float) -> list[str]:
    """Waits until all workers of a cluster have called this function.

    Args:
      index: index of this worker, from 0.
      addresses: `host:port` of all workers, in the same order on all of them; empty for workers
        other than the first that find a free port for themselves.
      timeout_seconds: longest wait, in seconds.

    Returns:
      The addresses of all workers, none of them empty.

    Raises:
      ConfigError: the port of this worker is taken, or another worker has another list.
      PeerLostError: a worker did not start in time.
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
    with server:  # Its port is occupied until TensorFlow listens there.
        server.settimeout(_PAUSE_SECONDS)
        this_worker = _Worker([*addresses], index, server.getsockname()[1])
        if index == 0:
            return _gather(server, this_worker, wait)
        return _join(server, this_worker, wait)


@dataclasses.dataclass(frozen=True)
class _Worker:
    """Description of a worker, which it sends to the others.

    Attributes:
      cluster: its list of the addresses of all workers.
      number: its index in the list.
      port: the port at which it listens.
    """

    cluster: list[str]
    number: int
    port: int


class _Wait:
    """A wait for workers that is logged, and that ends after a time limit."""

    def __init__(self, addresses: Sequence[str], limit_seconds: float):
        self._addresses = [*addresses]
        self._limit_seconds = limit_seconds
        self._start = time.monotonic()
        self._seconds_at_last_line = 0.0

    def describe(self, indices: Iterable[int]) -> str:
        """Returns the indices of workers and their addresses, where these are known."""
        descriptions = []
        for index in indices:
            description = f"worker {index} of {len(self._addresses)}"
            if self._addresses[index]:
                description += f" ({self._addresses[index]})"
            descriptions.append(description)
        return ", ".join(descriptions)

    def check(self, missing: str, reason: str = "") -> None:
        """Logs missing workers every half minute; raises `PeerLostError` after the limit."""
        seconds = time.monotonic() - self._start
        if seconds > self._limit_seconds:
            raise PeerLostError(
                f"workers: expected all of them within {self._limit_seconds:.0f} s "
                f"(--cluster_timeout), got none of {missing}{reason}; run the same command on all "
                "of them"
            )
        if seconds - self._seconds_at_last_line >= LOG_SECONDS:
            self._seconds_at_last_line = seconds
            Progress(sys.stderr).log_line(f"waiting for {missing}, {seconds:.0f} s{reason}")


def _gather(server: socket.socket, this_worker: _Worker, wait: _Wait) -> list[str]:
    """Accepts the other workers, on the first one, until all of them are connected.

    Returns:
      The addresses of all workers.
    """
    addresses = [*this_worker.cluster]
    others = range(1, len(addresses))
    connections: dict[int, socket.socket] = {}
    addresses_to_call = iter([address for address in addresses[1:] if address])
    with contextlib.ExitStack() as stack:
        try:
            while True:
                arrival = _accept(server, this_worker, stack)
                if arrival and arrival.number in others:
                    connections[arrival.number] = arrival.connection
                    if not this_worker.cluster[arrival.number]:
                        addresses[arrival.number] = arrival.address
                absent = [
                    worker_number for worker_number in others if worker_number not in connections
                ]
                lost = _drop_lost_workers(connections, wait.describe(absent))
                if not absent and not lost:
                    break
                wait.check(wait.describe([*absent, *lost]))
                address = next(addresses_to_call, None)
                if address is not None:
                    _call(address, this_worker)
        except ConfigError as error:
            _send(connections.values(), error=str(error))
            raise
        _send(connections.values(), addresses=addresses)
    return addresses


def _drop_lost_workers(connections: dict[int, socket.socket], missing: str) -> list[int]:
    """Tells all connected workers who is missing, and closes connections that do not answer.

    Returns:
      The indices of the workers that do not answer.
    """
    lost = []
    for worker_number, connection in connections.items():
        if not _answers(connection, missing):
            lost.append(worker_number)
    for worker_number in lost:
        connections.pop(worker_number).close()
    return lost


@dataclasses.dataclass(frozen=True)
class _Arrival:
    """A worker that has connected to this one.

    Attributes:
      number: its index.
      address: its host and the port at which it listens.
      connection: the connection.
    """

    number: int
    address: str
    connection: socket.socket


def _accept(
    server: socket.socket, this_worker: _Worker, stack: contextlib.ExitStack
) -> _Arrival | None:
    """Returns a worker that connects; None if there is none within a second.

    Raises:
      ConfigError: it has another list of workers; it has been told so.
    """
    try:
        connection, (host, *_) = server.accept()
        stack.callback(connection.close)
        connection.settimeout(_ANSWER_SECONDS)
        other = _Worker(**_receive(connection))
        _require_same_list(other, this_worker, connection)
    except (OSError, TypeError):
        return None
    return _Arrival(other.number, f"{host.removeprefix('::ffff:')}:{other.port}", connection)


def _require_same_list(other: _Worker, this_worker: _Worker, connection: socket.socket) -> None:
    """Raises `ConfigError`, here and on the other worker, if their lists of workers differ."""
    pairs = itertools.zip_longest(other.cluster, this_worker.cluster)
    for worker_number, (theirs, ours) in enumerate(pairs):
        if theirs != ours:
            message = (
                f"workers: expected the same list on all of them, got {theirs!r} as worker "
                f"{worker_number} in the list of worker {other.number} of {len(other.cluster)}, "
                f"and {ours!r} in the list of worker {this_worker.number} of "
                f"{len(this_worker.cluster)}"
            )
            _send([connection], error=message)
            raise ConfigError(message)


def _answers(connection: socket.socket, missing: str) -> bool:
    """Sends a worker the names of those that are missing; returns whether it answers."""
    _send([connection], missing=missing)
    try:
        return connection.recv(1) == b"\n"
    except OSError:
        return False


def _join(server: socket.socket, this_worker: _Worker, wait: _Wait) -> list[str]:
    """Connects to the first worker, and waits until it has met all of them.

    Returns:
      The addresses of all workers.
    """
    while True:
        reason = ""
        try:
            addresses = _wait_at_first_worker(server, this_worker, wait)
            if addresses:
                return addresses
        except KeyError:  # Another program answers, e.g. TensorFlow's server of a run that ends.
            pass
        except OSError as error:  # The first worker has not started yet.
            reason = f" ({error})"
        wait.check(wait.describe([0]), reason)
        _answer_call(server, this_worker)


def _wait_at_first_worker(
    server: socket.socket, this_worker: _Worker, wait: _Wait
) -> list[str] | None:
    """Returns the addresses of all workers; None if the first one is silent for ten seconds.

    Raises:
      ConfigError: another worker has another list than this one.
      OSError: the first worker cannot be reached, or the connection is lost.
      KeyError: what listens at its address is not a worker.
    """
    with _connected(this_worker.cluster[0], this_worker, _ANSWER_SECONDS) as connection:
        while ready := select.select([connection, server], [], [], _ANSWER_SECONDS)[0]:
            if server in ready:
                _answer_call(server, this_worker)
                continue
            message = _receive(connection)
            if "addresses" in message:
                return message["addresses"]
            missing = message["missing"]
            connection.sendall(b"\n")
            if missing:
                wait.check(missing)
    return None


def _answer_call(server: socket.socket, this_worker: _Worker) -> None:
    """Accepts a worker that connects to this one; raises `ConfigError` if it has another list."""
    with contextlib.ExitStack() as stack:
        _accept(server, this_worker, stack)


def _call(address: str, this_worker: _Worker) -> None:
    """Connects to another worker once; raises `ConfigError` if it has another list."""
    with contextlib.suppress(OSError), _connected(address, this_worker, _PAUSE_SECONDS) as other:
        _receive(other)


def _connected(address: str, this_worker: _Worker, timeout_seconds: float) -> socket.socket:
    """Returns a connection to another worker, after this one has introduced itself."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host.strip("[]"), int(port)), timeout_seconds)
    _send([connection], **dataclasses.asdict(this_worker))
    return connection


def _send(connections: Iterable[socket.socket], **message: Any) -> None:
    for connection in connections:
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(message).encode() + b"\n")


def _receive(connection: socket.socket) -> dict[str, Any]:
    """Returns the next message of a worker; empty if it is from another program.

    Raises:
      ConfigError: the other worker has another list than this one.
      OSError: nothing is received.
    """
    line = connection.makefile("rb").readline(_LONGEST_LINE)
    try:
        message = dict(json.loads(line))
    except (TypeError, ValueError):
        return {}
    if "error" in message:
        raise ConfigError(message["error"])
    return message
