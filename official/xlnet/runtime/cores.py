"""Number of available CPU cores, and of the micro-batches that are computed on them in parallel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # The command's help needs the number of cores, and no configuration.
    from official.xlnet.configs.training import TrainingConfig

_MOST_SLICES = 4  # Each is traced and compiled by itself.


def num_cores() -> int:
    """Returns the number of CPU cores this process may use (its affinity, where supported)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def num_parallel_slices(
    training: TrainingConfig, num_rows: int | None, has_accelerator: bool
) -> int:
    """Returns the number of micro-batches to compute in parallel.

    It is `training.parallel_slices`. Where that is 0, it is the number of CPU cores, or the next
    smaller divisor of the rows, at most 4; 1 on a GPU or TPU.

    Args:
      training: the training configuration.
      num_rows: number of rows that are computed at a time on one device; None if unknown.
      has_accelerator: whether they are computed on a GPU or TPU.
    """
    if training.parallel_slices:
        return training.parallel_slices
    if num_rows is None or has_accelerator:
        return 1
    most = min(num_cores(), _MOST_SLICES)
    return max(num_slices for num_slices in range(1, most + 1) if num_rows % num_slices == 0)
