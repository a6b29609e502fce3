"""Number of available CPU cores."""

from __future__ import annotations

import os


def num_cores() -> int:
    """Returns the number of CPU cores this process may use (its affinity, where supported)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
