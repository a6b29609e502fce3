"""CPU time and memory of this process, charged to what has taken it."""

from __future__ import annotations

import collections
import contextlib
import resource


def cpu_seconds() -> float:
    """CPU-seconds of this process and of the children that it has waited for."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def peak_gb() -> float:
    """The most memory that this process has taken."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


class Meter:
    """CPU-seconds of this process since they were last taken, and those of shared parts."""

    def __init__(self):
        self._taken = 0.0
        self._of_parts: collections.Counter[str] = collections.Counter()

    @contextlib.contextmanager
    def charge_to(self, part: str):
        """Charges a block to a shared part. A part within it is charged by itself."""
        before, before_of_parts = cpu_seconds(), self._of_parts.total()
        yield
        within = self._of_parts.total() - before_of_parts
        self._of_parts[part] += cpu_seconds() - before - within

    def take(self) -> tuple[float, dict[str, float]]:
        """Returns the CPU-seconds since the last call: of no part, and of each part."""
        now, parts = cpu_seconds(), dict(self._of_parts)
        rest = now - self._taken - sum(parts.values())
        self._taken = now
        self._of_parts.clear()
        return rest, parts


METER = Meter()
