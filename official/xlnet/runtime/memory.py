"""Model sizes against the memory of the machine, before anything is built."""

from __future__ import annotations

import contextlib
import os
import pathlib
import resource
from collections.abc import Iterator

from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.training import TrainingConfig
from official.xlnet.errors import ConfigError

_FLOAT32_BYTES = 4
_TRAINED_ARRAYS = 4  # Weights, gradients and the two moments of the optimizer.
_CGROUPS = "/proc/self/cgroup"
# By the controllers that a line of that file names: where control groups of version 1 and 2 are.
_CGROUP_LIMITS = {
    "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    "": ("/sys/fs/cgroup", "memory.max"),
}


def least_bytes(
    model: ModelConfig,
    rows: int = 0,
    tokens: int = 0,
    training: bool = False,
    distances: int = 0,
) -> int:
    """Lower bound of the memory that a model and its batches take on one device, in bytes.

    Counts what cannot be avoided: the weights, in training four times (gradients and the two
    moments of the optimizer); the recurrent memory; the hidden states of a layer, in training of
    all; the attention scores of a layer. A run needs more than that.

    Args:
      model: hyperparameters of the network.
      rows: number of rows of a batch on one device; 0 for the weights alone.
      tokens: number of tokens per row.
      training: whether the model is trained.
      distances: number of distances whose projections are stored for inference.
    """
    weights = model.num_parameters * (_TRAINED_ARRAYS if training else 1)
    memory = model.num_layers * rows * model.mem_len * model.d_model
    states = (model.num_layers if training else 1) * rows * tokens * model.d_model
    scores = rows * model.num_heads * tokens * (tokens + model.mem_len)
    # While the last layer's are computed: the table, its two halves, and the product twice.
    projections = (model.num_layers + 3) * distances * model.d_model
    return _FLOAT32_BYTES * (weights + memory + states + scores + projections)


def require_memory(
    model: ModelConfig,
    rows: int = 0,
    tokens: int = 0,
    training: bool = False,
    distances: int = 0,
) -> None:
    """Raises `ConfigError` if the machine has less memory than `least_bytes`.

    Args:
      model: hyperparameters of the network.
      rows: number of rows of a batch on one device; 0 for the weights alone.
      tokens: number of tokens per row.
      training: whether the model is trained.
      distances: number of distances whose projections are stored for inference.

    Example:
      >>> require_memory(ModelConfig(d_inner=10**9))
      ConfigError: memory: 18,433,158,835,200 parameters: expected at least 73,732.6 GB, got …
    """
    needed, there = least_bytes(model, rows, tokens, training, distances), machine_bytes()
    if needed > there:
        batch = f", batches of {rows:,} rows of {tokens:,} tokens" if rows else ""
        batch += f", inputs of {distances // 2:,} tokens" if distances else ""
        raise ConfigError(
            f"memory: {model.num_parameters:,} parameters{batch}: expected at least "
            f"{needed / 1e9:,.1f} GB, got {there / 1e9:,.1f} GB; use a smaller model or batch, "
            "or shorter inputs"
        )


def rows_at_once(training: TrainingConfig, num_replicas: int = 1) -> int:
    """Number of rows of a training batch that one device computes at a time."""
    return -(-training.batch_size // (num_replicas * training.accumulate_steps))


def machine_bytes() -> int:
    """Returns the memory that this process may have: of the machine, its container and `ulimit`."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in _cgroup_limits():
        with contextlib.suppress(OSError, ValueError):  # No such limit; "max".
            limits.append(int(path.read_text("ascii")))
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space)
    return min(limits)


def _cgroup_limits() -> Iterator[pathlib.Path]:
    """Files with the limits of the control groups of this process, and of all above them.

    A container sees its own group as the root, or the whole path to it, as a systemd unit does.
    """
    try:
        lines = pathlib.Path(_CGROUPS).read_text("utf-8").splitlines()
    except OSError:  # Not Linux.
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers in _CGROUP_LIMITS:
            root, name = _CGROUP_LIMITS[controllers]
            group = pathlib.PurePath(path.lstrip("/"))
            for each in (group, *group.parents):
                yield pathlib.Path(root, each, name)
