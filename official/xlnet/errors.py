"""Exceptions for user errors: the `xlnet` command prints a one-line message, no traceback.

The `exit_status` of each class is the exit status of the command.
"""

from __future__ import annotations

import difflib
import importlib.util
import traceback
from collections.abc import Iterable, Mapping


def how_to_install(extra: str) -> str:
    """Returns how to install an extra of this package, which is not on a package index."""
    return (
        f"pip install '.[{extra}]' in its checkout, or the wheel with [{extra}] (docs/install.md)"
    )


def did_you_mean(
    word: str,
    known: Iterable[str],
    least: float = 0.6,
    full: Mapping[str, str] | None = None,
) -> str:
    """Returns the end of a message about an unknown word, which names the nearest known one.

    Args:
      word: the unknown word.
      known: the words that are known.
      least: least similarity of the nearest one, in [0, 1].
      full: what to show in the place of a known word, e.g. with its section.

    Example:
      >>> did_you_mean("postive", ["negative", "positive"])
      "; did you mean 'positive'?"
    """
    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=least)
    return f"; did you mean {(full or {}).get(matches[0], matches[0])!r}?" if matches else ""


class _OneLine(BaseException):
    """Base class of errors that notebooks show as one line; `%tb` shows the traceback."""

    def _render_traceback_(self) -> list[str]:
        if any(frame.name == "tb" for frame in traceback.extract_stack()):
            return traceback.format_exception(self)
        name = "KeyboardInterrupt" if isinstance(self, KeyboardInterrupt) else type(self).__name__
        return [f"{name}: {self}"]


class XLNetError(_OneLine, Exception):
    """Base class of errors whose message tells the user what to do.

    Attributes:
      exit_status: exit status of the `xlnet` command.
      names_local_paths: whether the message is to name local copies of URLs by their paths.
    """

    exit_status = 2
    names_local_paths = False
    # AutoGraph keeps the class of errors with this initializer when it adds to their message.
    __init__ = Exception.__init__


class ConfigError(XLNetError, ValueError):
    """Invalid configuration; the message names the key, the expected and the actual value."""


class ArgumentTypeError(ConfigError, TypeError):
    """An argument has an unexpected type."""


class DataError(XLNetError, ValueError):
    """Invalid data; the message names the file or row, the expected and the actual value."""


def require_data(holds: bool, where: str, expected: str, got: object) -> None:
    """Raises `DataError` unless a condition holds.

    Args:
      holds: the condition.
      where: the file or row, for the message.
      expected: what it has to be.
      got: what it is, in words; advice may follow.
    """
    if not holds:
        raise DataError(f"{where}: expected {expected}, got {got}")


def require_config(holds: bool, where: str, expected: str, got: object) -> None:
    """Raises `ConfigError` unless a condition holds; see `require_data`."""
    if not holds:
        raise ConfigError(f"{where}: expected {expected}, got {got}")


class DivergedError(XLNetError):
    """Non-finite loss or gradients in training; the message names the step, windows and layer."""

    exit_status = 70


class PeerLostError(XLNetError):
    """Another worker of a run was lost; the same command resumes from the last checkpoint."""

    exit_status = 76


class PreemptedError(XLNetError):
    """Training was preempted by SIGTERM; a checkpoint has been saved."""

    exit_status = 75


class StoppedError(_OneLine, KeyboardInterrupt):
    """A call was stopped by SIGINT: Ctrl-C, or the Stop button of a notebook."""


def require_extra(package: str, extra: str, purpose: str) -> None:
    """Checks that an optional package is installed, without importing it.

    Args:
      package: import name of the package.
      extra: extra of this project that installs it.
      purpose: the flag or file that needs it, for the error message.

    Raises:
      ConfigError: the package is not installed. The message says how to install it.

    Example:
      >>> require_extra("apache_beam", "beam", "--runner")
    """
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"{purpose} needs the package {package}, which is not installed: "
            f"{how_to_install(extra)}"
        )
