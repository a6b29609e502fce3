"""Distribution strategies and their devices, CPU threads and memory."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

import tensorflow as tf
from absl import logging

from official.xlnet.configs.choices import CLUSTER_TIMEOUT
from official.xlnet.configs.registry import STRATEGIES
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.configs.validation import require
from official.xlnet.errors import ConfigError, XLNetError
from official.xlnet.runtime.cores import num_cores, num_parallel_slices

# Parameters of glibc's mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGE_BYTES = 1 << 20  # Blocks above this size are returned as soon as they are freed.


def prepare_devices(
    training: TrainingConfig,
    strategy: str | tf.distribute.Strategy = "one_device",
    cpu_devices: int = 1,
    cluster_timeout: float = CLUSTER_TIMEOUT,
) -> tf.distribute.Strategy:
    """Configures threads, memory and devices of a run; to be called before any use of TensorFlow.

    Args:
      training: the training configuration.
      strategy: distribution strategy by name, see `create_strategy`; or what this function has
        returned already, which is returned again.
      cpu_devices: number of virtual CPU devices; see `create_strategy`.
      cluster_timeout: longest wait for other workers, in seconds; see `create_strategy`.

    Returns:
      The strategy.

    Raises:
      ConfigError: the devices are not available, or do not support `training.precision`.
      PeerLostError: another worker did not come in time.
    """
    if not isinstance(strategy, str):
        return strategy
    limit_threads(training)
    release_memory(training)
    distribution = create_strategy(strategy, cpu_devices, cluster_timeout)
    is_tpu = isinstance(distribution, tf.distribute.TPUStrategy)
    require(
        not is_tpu or training.precision != "mixed_float16",
        "training.precision",
        "float32 or mixed_bfloat16 on a TPU",
        "mixed_float16",
    )
    return distribution


def create_strategy(
    name: str, cpu_devices: int = 1, cluster_timeout: float = CLUSTER_TIMEOUT
) -> tf.distribute.Strategy:
    """Creates a `tf.distribute.Strategy` by name.

    Args:
      name: name of a registered strategy. `mirrored` uses all GPUs, or all logical CPU devices if
        there is no GPU; `tpu` uses the local TPUs, or those named by TPU_NAME.
      cpu_devices: number of logical devices to split the CPU into, for testing multi-replica
        training without GPUs.
      cluster_timeout: longest wait for other workers, in seconds.

    Returns:
      The strategy.

    Raises:
      ConfigError: the devices are not available.
      PeerLostError: another worker did not come in time.
    """
    if cpu_devices > 1:
        _split_cpu(cpu_devices)
    create = STRATEGIES[name]
    try:
        return create(cluster_timeout)
    except XLNetError:
        raise
    except (tf.errors.OpError, RuntimeError, ValueError, KeyError) as error:
        message = str(error).strip().partition("\n")[0]
        raise ConfigError(f"strategy: {name} cannot be used here: {message}") from error


def register_strategy(name: str) -> Callable[[Callable], Callable]:
    """Decorator that registers a distribution strategy.

    The function takes the longest time to wait for other workers, in seconds, and returns a
    `tf.distribute.Strategy`.

    Args:
      name: value of `strategy` that selects it.

    Raises:
      ConfigError: a strategy is already registered under the name.

    Example:
      >>> @register_strategy("first_gpus")
      ... def first_gpus(timeout_seconds):
      ...     return tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])
    """
    return STRATEGIES.register(name)


@register_strategy("one_device")
def one_device(timeout_seconds: float) -> tf.distribute.Strategy:
    """Creates the strategy of the first GPU, or of the CPU if there is no GPU."""
    return tf.distribute.OneDeviceStrategy(f"device:{_device_type()}:0")


@register_strategy("mirrored")
def mirrored(timeout_seconds: float) -> tf.distribute.Strategy:
    """Creates the strategy of all GPUs, or of all logical CPU devices if there is no GPU."""
    devices = tf.config.list_logical_devices(_device_type())
    return _mirrored(tuple(device.name for device in devices))


@functools.cache
def _mirrored(devices: tuple[str, ...]) -> tf.distribute.Strategy:
    """Returns the mirrored strategy of some devices, the same one for all runs of a process.

    Each strategy numbers its sums over replicas from the start, and TensorFlow refuses two sums
    with the same number and different shapes.
    """
    return tf.distribute.MirroredStrategy(devices)


@register_strategy("tpu")
def tpu(timeout_seconds: float) -> tf.distribute.Strategy:
    """Creates the strategy of the local TPUs, or of those named by TPU_NAME."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver.connect(tpu="")
    return tf.distribute.TPUStrategy(resolver)


def _device_type() -> str:
    return "GPU" if tf.config.list_physical_devices("GPU") else "CPU"


def limit_threads(training: TrainingConfig) -> None:
    """Limits intra-op threads so that parallel gradient accumulation does not oversubscribe cores.

    Each of the `num_parallel_slices` micro-batches gets an equal share of the CPU cores. Has to be
    called before TensorFlow is initialized.

    Args:
      training: the training configuration.
    """
    # Listing physical devices does not initialize TensorFlow.
    has_accelerator = any(map(tf.config.list_physical_devices, ("GPU", "TPU")))
    num_rows = training.batch_size // training.accumulate_steps
    slices = num_parallel_slices(training, num_rows, has_accelerator)
    if slices == 1:
        return
    try:
        tf.config.threading.set_intra_op_parallelism_threads(max(1, num_cores() // slices))
    except RuntimeError:
        logging.info(
            "training.parallel_slices: TensorFlow is already initialized, so the number of "
            "intra-op threads cannot be changed; parallel gradient accumulation will be slower"
        )


def release_memory(training: TrainingConfig) -> None:
    """Configures the allocator to return freed memory of large tensors to the operating system.

    By default, TensorFlow with oneDNN caches freed memory and reuses it for later tensors, which
    is faster but fragments memory. Has to be called before TensorFlow is initialized; requires
    glibc. Does nothing unless `training.release_memory` is set.

    Args:
      training: the training configuration.
    """
    if not training.release_memory:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        logging.warning("training.release_memory: ignored, as it requires Linux with glibc")
        return
    os.environ["TF_ONEDNN_USE_SYSTEM_ALLOCATOR"] = "1"
    # Setting the threshold disables its dynamic adjustment, which would keep large freed blocks.
    mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
    mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the chief worker, which writes checkpoints and logs."""
    return strategy.extended.should_checkpoint


def compiles_step(jit_compile: bool | None, strategy: tf.distribute.Strategy) -> bool:
    """Whether Keras compiles the training step with XLA as a whole.

    TPU programs are always compiled, and XLA does not support all-reduce between CPU devices.

    Args:
      jit_compile: of `training`; None for on a single GPU only.
      strategy: of the training.
    """
    if isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    if jit_compile is None:
        return has_gpu and strategy.num_replicas_in_sync == 1
    return jit_compile and (has_gpu or strategy.num_replicas_in_sync == 1)


def _split_cpu(num_devices: int) -> None:
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * num_devices
        )
    except RuntimeError as error:
        raise ConfigError(f"cpu_devices: TensorFlow is already initialized: {error}") from None
