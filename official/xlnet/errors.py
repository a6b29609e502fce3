"""Errors that end a command with one sentence instead of a traceback.

Each class names the exit status of the `xlnet` command that it leads to.
"""

from __future__ import annotations


class XLNetError(Exception):
    """An error whose message tells the user what to do.

    Attributes:
      exit_status: the status that the `xlnet` command exits with.
    """

    exit_status = 2


class ConfigError(XLNetError, ValueError):
    """Invalid configuration; the message names the key, what was expected and what was found."""


class DataError(XLNetError, ValueError):
    """Unusable data; the message names the file or row, what was expected and what was found."""


class DivergedError(XLNetError):
    """Non-finite loss or gradients in training; the message names step, windows and layer."""

    exit_status = 70


class PreemptedError(XLNetError):
    """Training was terminated by SIGTERM after its state had been saved."""

    exit_status = 75
