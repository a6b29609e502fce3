"""Stops of a run, by SIGTERM or Ctrl-C: it saves a checkpoint after the current step and exits."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class TerminationSignal:
    """Context manager that records SIGTERM and SIGINT instead of terminating the process.

    SIGINT is what Ctrl-C and the Stop button of a notebook send. A second one ends the block at
    once, by `KeyboardInterrupt`. It is left alone where Python does not answer it in this way, e.g.
    in a job that a shell started in the background.

    Has no effect outside the main thread, where Python cannot handle signals.

    Attributes:
      received: number of the signal that has been received, 0 for none.

    Example:
      >>> with TerminationSignal() as termination:
      ...     for step in range(num_steps):
      ...         train_step()
      ...         if termination.received:
      ...             break
    """

    def __enter__(self) -> TerminationSignal:
        self.received, self._previous = 0, {}
        if threading.current_thread() is threading.main_thread():
            self._previous[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._handle)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                self._previous[signal.SIGINT] = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error) -> None:
        for signal_number, handler in self._previous.items():
            signal.signal(signal_number, handler)

    def _handle(self, signal_number: int, frame: FrameType | None) -> None:
        self.received = signal_number
        if signal_number == signal.SIGINT:
            signal.signal(signal_number, signal.default_int_handler)
