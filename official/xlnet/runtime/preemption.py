"""SIGTERM: a run saves its state between two steps and leaves."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class TerminationSignal:
    """Notes that SIGTERM came, for as long as it is entered.

    In a thread other than the main one, where Python takes no signals, nothing is noted.

    Attributes:
      received: whether it came.
    """

    def __init__(self) -> None:
        self.received = False
        self._is_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> TerminationSignal:
        if self._is_main:
            self._previous = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *error) -> None:
        if self._is_main:
            signal.signal(signal.SIGTERM, self._previous)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = True
