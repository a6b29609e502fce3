"""The distribution strategy `multi_worker`: synchronous training on all workers of a cluster."""

from __future__ import annotations

import signal

import tensorflow as tf

from official.xlnet.projects.clusters.environment import find_cluster
from official.xlnet.projects.clusters.lost_workers import lost_worker_error
from official.xlnet.runtime.distribution import register_strategy

_START_SECONDS = 300  # Longest start of TensorFlow once all workers have met.


@register_strategy("multi_worker")
def multi_worker(timeout_seconds: float) -> tf.distribute.Strategy:
    """Creates the strategy of the cluster of this process, once all of its workers have started.

    Args:
      timeout_seconds: longest wait for the other workers, in seconds.

    Raises:
      ConfigError: there is no cluster, or its variables contradict each other.
      PeerLostError: a worker did not start in time, or was lost.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    cluster = find_cluster(num_gpus, timeout_seconds)
    try:
        # If a worker is killed now, TensorFlow waits for it, and holds Python's lock: no thread
        # of Python could end the wait, but a signal does.
        signal.alarm(_START_SECONDS)
        return tf.distribute.MultiWorkerMirroredStrategy(cluster)
    except tf.errors.OpError as error:
        lost = lost_worker_error(error, (cluster.task_type, cluster.task_id))
        if lost is None:
            raise
        raise lost from error
    finally:
        signal.alarm(0)
