"""Preemption by SIGTERM: lets a run save a checkpoint after the current step and exit."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class TerminationSignal:
    """Context manager that records SIGTERM instead of terminating the process.

    Has no effect outside the main thread, where Python cannot handle signals.

    Attributes:
      received: whether SIGTERM has been received.

    Example:
      >>> with TerminationSignal() as termination:
      ...     for step in range(num_steps):
      ...         train_step()
      ...         if termination.received:
      ...             break
    """

    def __init__(self) -> None:
        self.received = False
        self._is_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> TerminationSignal:
        if self._is_main:
            self._previous = signal.signal(signal.SIGTERM, self._handle)
        return self

    def __exit__(self, *error) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = True
