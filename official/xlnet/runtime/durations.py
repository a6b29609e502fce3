"""Durations in seconds, as people read them, and rates."""

from __future__ import annotations

import time


def per_second(num_items: int, start: float) -> float:
    """Items per second since `start`, a time of `time.monotonic`."""
    return round(num_items / max(time.monotonic() - start, 1e-9), 1)  # Not by zero.


def minutes_and_seconds(seconds: float) -> str:
    """Formats a duration in seconds as `minutes:seconds`.

    Example:
      >>> minutes_and_seconds(125.4)
      '2:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
