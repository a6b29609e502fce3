"""Agreement of all workers of a run before its first step, and errors of lost workers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import ConfigError, PeerLostError
from official.xlnet.runtime.distribution import num_workers, sum_over_workers
from official.xlnet.runtime.progress import elapsed_time

_SAY_SECONDS = 30
# In the errors of collective operations and of the coordination service.
_LOST = re.compile(r"Collective ops is aborted|heartbeat|unhealthy|[Ss]ocket closed|[Cc]onnect")
_DIGEST_BYTES = 7  # Bytes of a SHA-256 that an int64 holds.


def require_agreement(
    strategy: tf.distribute.Strategy, aspects_of: Callable[[], Mapping[str, Any]]
) -> None:
    """Raises an error on every worker if the workers of a run differ in something.

    Every worker has to call it at the same place. A single worker agrees with itself.

    Args:
      strategy: the distribution strategy.
      aspects_of: returns {name: value for JSON} of what has to be the same, with the same names on
        all; called if there are several workers.

    Raises:
      ConfigError: a worker has another value than the first; the message says which, and in what.
    """
    number = num_workers(strategy)
    if number == 1:
        return
    aspects = aspects_of()
    digests_NA = np.zeros((number, len(aspects)), np.int64)
    digests_NA[strategy.cluster_resolver.task_id] = [_digest(value) for value in aspects.values()]
    with elapsed_time(f"waiting for all {number} workers", _SAY_SECONDS):
        all_digests_NA = sum_over_workers(strategy, digests_NA)
    for name, digests in zip(aspects, all_digests_NA.T, strict=True):
        others = np.flatnonzero(digests != digests[0])
        if len(others):
            named = ", ".join(map(str, others))
            raise ConfigError(
                f"workers: expected the same {name} on all {number}, got another one on worker "
                f"{named} than on worker 0; start all of them with the same command and files"
            )


@contextlib.contextmanager
def lost_workers(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Context manager that makes one sentence of the errors that the loss of a worker leaves.

    Args:
      strategy: the distribution strategy.

    Raises:
      PeerLostError: another worker ended, or cannot be reached.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if num_workers(strategy) == 1 or not _LOST.search(error.message):
            raise
        named = sorted(set(re.findall(r"/job:(\w+)/(?:replica:0/)?task:(\d+)", error.message)))
        this_worker = (strategy.cluster_resolver.task_type, str(strategy.cluster_resolver.task_id))
        others = [f"{kind} {n}" for kind, n in named if (kind, n) != this_worker]
        raise PeerLostError(
            f"workers: lost {', '.join(others) or 'another worker'}; run the same command again on "
            "all of them to resume from the last checkpoint"
        ) from error


def _digest(value: Any) -> int:
    text = json.dumps(value, sort_keys=True, default=repr)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES], "big")
