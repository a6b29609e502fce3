"""The conventions of Unix for a program: interrupts at any time, standard streams that fail.

The package imports it first, before anything that takes time.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

_MODULE = ["-m", "official.xlnet.cli"]


class _Patient(io.FileIO):
    """Standard output or error: what cannot be written is left out, and the work goes on."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            self.error = error
            return len(data)


def begin() -> _Patient:
    """Prepares the standard streams; interrupts are exceptions from now on.

    Streams that are closed are opened, so that no file of the work gets their number: nothing is
    read from standard input, writing to standard output fails, and what is written to standard
    error is lost.

    Returns:
      The file of standard output, which keeps the error of writing to it.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)  # The lowest number that is free.
    files = [_Patient(number, "w", closefd=False) for number in (1, 2)]
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(
            io.BufferedWriter(file),
            "utf-8" if stream is None else stream.encoding,
            "backslashreplace",  # Whatever the encoding can write.
            line_buffering=file.isatty() or file.fileno() == 2,
        )
        for file, stream in zip(files, (sys.stdout, sys.stderr), strict=True)
    )
    _on_interrupt(_interrupt)
    return files[0]


def end() -> None:
    """Ends the process at once at an interrupt: the work is done."""
    _on_interrupt(_leave)


def _on_interrupt(handler: Callable[..., Any]) -> None:
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _interrupt, _leave):
        with contextlib.suppress(ValueError):  # Not the main thread.
            signal.signal(signal.SIGINT, handler)  # Unless it is ignored, as in the background.


def _interrupt(*_: Any) -> None:
    _on_interrupt(_leave)  # The second time, without cleaning up.
    raise KeyboardInterrupt


def _leave(*_: Any) -> None:
    os._exit(EXIT_INTERRUPTED)


if os.path.basename(sys.argv[0]) == "xlnet" or sys.orig_argv[1:3] == _MODULE:
    _on_interrupt(_leave)  # There is nothing to clean up before the work begins.
