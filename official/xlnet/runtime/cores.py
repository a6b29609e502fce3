"""Resources of this process: its CPU cores, micro-batches that share them, and open files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from official.xlnet.errors import require_config

if TYPE_CHECKING:  # The command's help needs the number of cores, and no configuration.
    from official.xlnet.configs.training import TrainingConfig

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

_MOST_SLICES = 4  # Each is traced and compiled by itself.
OTHER_FILES = 256  # Libraries, logs, checkpoints and connections of a run.


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


def require_open_files(num_files: int, key: str) -> None:
    """Raises the soft limit on open files to the hard one if files would not fit.

    Args:
      num_files: number of files that are open at the same time.
      key: name of the setting that the number is the value of.

    Raises:
      ConfigError: the hard limit is too low.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    num_needed = num_files + OTHER_FILES
    if soft == resource.RLIM_INFINITY or num_needed <= soft:
        return
    is_unlimited = hard == resource.RLIM_INFINITY
    require_config(
        is_unlimited or num_needed <= hard,
        key,
        f"at most {hard - OTHER_FILES} on each host, as each row keeps a file open and a process "
        f"may have {hard} (ulimit -Hn)",
        num_files,
    )
    # Not every system accepts an infinite number here.
    limit = num_needed if is_unlimited else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
