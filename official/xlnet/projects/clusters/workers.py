"""The workers of a cluster during a run: agreement, sums over workers, errors of lost workers."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.configs.registry import WORKERS
from official.xlnet.errors import ConfigError
from official.xlnet.projects.clusters.lost_workers import lost_worker_error
from official.xlnet.runtime.progress import elapsed_time
from official.xlnet.runtime.workers import Workers

_LOG_SECONDS = 30
_DIGEST_BYTES = 7  # Bytes of a SHA-256 that fit into an int64.
_SHORT_CHARS = 40  # Values of workers that differ are cut to so many characters in messages.


@WORKERS.register("CollectiveAllReduceStrategy")
def workers_of_cluster(strategy: tf.distribute.Strategy) -> Workers:
    """Returns the workers of a `MultiWorkerMirroredStrategy`."""
    resolver = strategy.cluster_resolver
    if resolver is None:
        return Workers()
    jobs = resolver.cluster_spec().as_dict()
    num_workers = sum(len(addresses) for addresses in jobs.values())
    if num_workers <= 1:
        return Workers()
    return ClusterWorkers(strategy, num_workers)


class ClusterWorkers(Workers):
    """Several workers, each a process that runs the same steps on its rows of a batch.

    Every worker has to call the methods at the same places, as they communicate.

    Args:
      strategy: the distribution strategy.
      num_workers: number of workers.
    """

    def __init__(self, strategy: tf.distribute.Strategy, num_workers: int):
        self._strategy = strategy
        self._num_workers = num_workers

    def require_agreement(self, get_aspects: Callable[[], Mapping[str, Any]]) -> None:
        aspects = {name: _canonical_json(value) for name, value in get_aspects().items()}
        digests_NA = np.zeros((self._num_workers, len(aspects)), np.int64)
        this_worker = self._strategy.cluster_resolver.task_id
        digests_NA[this_worker] = [_digest(text) for text in aspects.values()]
        with elapsed_time(f"waiting for all {self._num_workers} workers", _LOG_SECONDS):
            all_digests_NA = self._sum(digests_NA)
        for name, digests_N in zip(aspects, all_digests_NA.T, strict=True):
            differing = np.flatnonzero(digests_N != digests_N[0])
            if len(differing):
                texts = self._gather(aspects[name], workers=(0, int(differing[0])))
                difference = describe_difference(*map(json.loads, texts))
                raise ConfigError(
                    f"workers: expected the same {name} on all {self._num_workers}, got another "
                    f"one on worker {', '.join(map(str, differing))} than on worker 0 "
                    f"({difference}); start all of them with the same command and files"
                )

    def any(self, is_true: bool) -> bool:
        return bool(self._sum(np.array(is_true, np.int64)))

    def wait(self) -> None:
        self.any(False)

    @contextlib.contextmanager
    def lost_worker_errors(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            resolver = self._strategy.cluster_resolver
            lost = lost_worker_error(error, (resolver.task_type, resolver.task_id))
            if lost is None:
                raise
            raise lost from error

    def _gather(self, text: str, workers: Sequence[int]) -> list[str]:
        """Returns the texts of some workers; all workers have to call it.

        Args:
          text: that of this worker.
          workers: indices of the workers whose texts are returned.
        """
        this_worker = self._strategy.cluster_resolver.task_id
        encoded_text = np.frombuffer(text.encode(), np.uint8)
        lengths_W = self._sum(np.array([(w == this_worker) * len(encoded_text) for w in workers]))
        bytes_WL = np.zeros((len(workers), max(lengths_W)), np.int64)
        if this_worker in workers:
            bytes_WL[workers.index(this_worker), : len(encoded_text)] = encoded_text
        texts = self._sum(bytes_WL).astype(np.uint8)
        return [
            row_L[:length].tobytes().decode()
            for row_L, length in zip(texts, lengths_W, strict=True)
        ]

    def _sum(self, array: np.ndarray) -> np.ndarray:
        """Returns the sum of an int64 array over all workers."""
        replicas_per_worker = self._strategy.num_replicas_in_sync // self._num_workers
        add = _adder(self._strategy, replicas_per_worker)
        return add(tf.constant(array)).numpy()


@functools.cache
def _adder(
    strategy: tf.distribute.Strategy, replicas_per_worker: int
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns a function that sums a tensor over workers; all replicas of a worker have the same.

    It is kept for all runs of a process, so that it is traced once.
    """

    def add_on_replica(array: tf.Tensor) -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        is_first = replica.replica_id_in_sync_group % replicas_per_worker == 0
        summand = tf.cast(is_first, tf.int64) * array
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, summand)

    def add(array: tf.Tensor) -> tf.Tensor:
        sums = strategy.run(add_on_replica, args=(array,))
        return strategy.experimental_local_results(sums)[0]

    return tf.function(add, autograph=False)


def describe_difference(first: Any, other: Any) -> str:
    """Returns in which value two workers differ, for a message: `KEY: OTHER, not FIRST`.

    Args:
      first: JSON of the first worker.
      other: JSON of another worker, which is not the same.

    Example:
      >>> describe_difference({"training": {"seed": 3}}, {"training": {"seed": 5}})
      'training.seed: 5, not 3'
    """
    keys: list[str] = []
    while isinstance(first, dict) and isinstance(other, dict):
        # As their digests: 1 and 1.0 differ, and so do `null` and no value.
        key = next(
            key
            for key in {**first, **other}
            if (key in first) != (key in other)
            or _canonical_json(first[key]) != _canonical_json(other[key])
        )
        first, other = first.get(key), other.get(key)
        keys.append(key)
    path = f"{'.'.join(keys)}: " if keys else ""
    return f"{path}{_short(other)}, not {_short(first)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHORT_CHARS else f"{text[:_SHORT_CHARS]}…"


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _digest(text: str) -> int:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:_DIGEST_BYTES], "big")
