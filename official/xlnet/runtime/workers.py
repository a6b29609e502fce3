"""The worker processes of a run: what they agree on, and how they wait for each other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from official.xlnet.configs.registry import WORKERS
from official.xlnet.errors import require_config


class Workers:
    """The worker processes of a run; this class is for a run of a single process.

    A subclass, for strategies with several processes, is registered in `WORKERS`. Every worker
    calls its methods at the same places.
    """

    def require_agreement(self, get_aspects: Callable[[], Mapping[str, Any]]) -> None:
        """Raises an error on every worker if the workers differ in something.

        Args:
          get_aspects: returns {name: value for JSON} of what has to be the same, with the same
            names on all workers; called if there are several workers.

        Raises:
          ConfigError: a worker has another value than the first; the message says which worker,
            and in what it differs.
        """

    def any(self, is_true: bool) -> bool:
        """Returns whether a flag is set on any worker.

        Args:
          is_true: the flag of this worker.
        """
        return is_true

    def wait(self) -> None:
        """Blocks until every worker has called it, e.g. until the chief has written its files."""

    @contextlib.contextmanager
    def lost_worker_errors(self) -> Iterator[None]:
        """Context manager that turns the errors of a lost worker into `PeerLostError`.

        Raises:
          PeerLostError: another worker ended, or cannot be reached.
        """
        yield


def workers_of(strategy: tf.distribute.Strategy) -> Workers:
    """Returns the workers of a distribution strategy.

    Args:
      strategy: the strategy.

    Raises:
      ConfigError: the strategy has several workers, and its class is not registered.
    """
    for strategy_class in type(strategy).__mro__:
        get_workers = WORKERS.find(strategy_class.__name__)
        if get_workers is not None:
            return get_workers(strategy)
    is_cluster = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    require_config(
        not is_cluster or not strategy.extended._in_multi_worker_mode(),
        "strategy",
        "a strategy of one process, or one whose workers are registered",
        type(strategy).__name__,
    )
    return Workers()
