"""How far a run is: one line that is rewritten on a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import math
import time
from typing import TextIO

_TERMINAL_SECONDS = 0.2  # Between two texts.
_LINE_SECONDS = 30  # The same where the output is no terminal.


class Progress:
    """Shows how far a run is.

    Args:
      stream: where it is shown.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._shown = -math.inf

    def show(self, text: str, is_last: bool = False) -> None:
        """Shows a text, to be overwritten by the next, unless one was shown just now."""
        now = time.monotonic()
        wait = _TERMINAL_SECONDS if self._is_terminal else _LINE_SECONDS
        if not is_last and now - self._shown < wait:
            return
        self._shown = now
        self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def keep(self, text: str) -> None:
        """Shows a text that stays."""
        self.show(text, is_last=True)
        self.close()

    def close(self) -> None:
        """Ends the line."""
        if self._is_terminal:
            self._stream.write("\n")


def minutes_and_seconds(seconds: float) -> str:
    """A duration as people write it.

    Example:
      >>> minutes_and_seconds(125.4)
      '2:05'
    """
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02d}"
