"""Devices: the strategy of a run, and what its workers have to agree on."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf
from absl import logging

from official.common import distribute_utils
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError
from official.xlnet.runtime.cores import num_cores

# Our names and those of tf-models-official.
STRATEGIES = {
    "one_device": "one_device",
    "mirrored": "mirrored",
    "multi_worker": "multi_worker_mirrored",
    "tpu": "tpu",
}


def create_strategy(name: str, cpu_devices: int = 1) -> tf.distribute.Strategy:
    """Returns a strategy over the devices of this machine, or of the cluster it belongs to.

    Args:
      name: one of `STRATEGIES`. `mirrored` takes all GPUs, or all logical CPUs where there is
        no GPU; `multi_worker` reads the cluster from the environment variable TF_CONFIG; `tpu`
        takes the TPUs of this machine, or those that TPU_NAME names.
      cpu_devices: logical devices to cut the CPU into, to try several replicas out.

    Raises:
      ConfigError: the name is unknown, or there are no such devices.
    """
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: expected one of {', '.join(STRATEGIES)}, got {name!r}")
    _split_cpu(cpu_devices)
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    if name == "one_device":
        num_gpus = min(1, num_gpus)
    if name == "mirrored" and not num_gpus:
        devices = tf.config.list_logical_devices("CPU")
        return tf.distribute.MirroredStrategy([device.name for device in devices])
    try:
        return distribute_utils.get_distribution_strategy(
            STRATEGIES[name], num_gpus, tpu_address=""
        )
    except (tf.errors.OpError, RuntimeError, ValueError, KeyError) as error:
        message = str(error).strip().partition("\n")[0]
        raise ConfigError(f"strategy: {name} cannot be used here: {message}") from error


def limit_threads(training: TrainingConfig) -> None:
    """Shares the CPU's cores between slices of a batch that are computed side by side.

    Where every operation had threads on all cores, slices would compete for them. Has to be
    called before TensorFlow starts.
    """
    if training.parallel_slices == 1:
        return
    threads = max(1, num_cores() // training.parallel_slices)
    try:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    except RuntimeError:
        logging.warning(
            "training.parallel_slices: TensorFlow has started already, with threads on all cores "
            "for every operation; slices are slower than they could be"
        )


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes the model directory."""
    return strategy.extended.should_checkpoint


def num_workers(strategy: tf.distribute.Strategy) -> int:
    """Processes that take part in every step."""
    resolver = strategy.cluster_resolver
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy) or resolver is None:
        return 1
    return max(1, sum(map(len, resolver.cluster_spec().as_dict().values())))


def on_any_worker(strategy: tf.distribute.Strategy, is_true: bool) -> bool:
    """Whether `is_true` on any worker; all of them have to ask."""
    if num_workers(strategy) == 1:
        return is_true
    flags = strategy.experimental_distribute_values_from_function(
        lambda _: tf.constant(int(is_true))
    )
    return bool(strategy.experimental_local_results(_adder(strategy)(flags))[0])


@functools.cache
def _adder(strategy: tf.distribute.Strategy) -> Callable:
    """Adds a number of each replica up; traced once."""

    def add(number):
        # The identity is on the replica's device; an argument is on none.
        replica = tf.distribute.get_replica_context()
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(number))

    return tf.function(lambda numbers: strategy.run(add, args=(numbers,)), autograph=False)


def can_compile(strategy: tf.distribute.Strategy) -> bool:
    """Whether `compile(jit_compile=True)` works under a strategy.

    TPUs compile every step by themselves, and TensorFlow cannot compile the exchange of
    gradients between CPUs.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    return strategy.num_replicas_in_sync == 1 or bool(tf.config.list_physical_devices("GPU"))


def _split_cpu(num_devices: int) -> None:
    if num_devices == 1:
        return
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * num_devices
        )
    except RuntimeError as error:
        raise ConfigError(f"cpu_devices: TensorFlow has started already: {error}") from None
