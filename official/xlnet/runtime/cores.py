"""How many CPU cores there are to use."""

from __future__ import annotations

import os


def num_cores() -> int:
    """CPU cores that this process may use, where the system tells; else those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
