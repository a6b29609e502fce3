"""The public function that is running, with all of its arguments."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class RunningCall:
    """A call of a public function.

    Attributes:
      name: name of the function.
      arguments: {parameter: value} of all parameters, with local paths in place of URLs.
      uses: {parameter with paths: their use}, see `PathRule`.
    """

    name: str
    arguments: Mapping[str, Any]
    uses: Mapping[str, str]


_running: contextvars.ContextVar[RunningCall | None] = contextvars.ContextVar("_running")


def running_call() -> RunningCall | None:
    """Returns the innermost call of a public function; None outside of all of them."""
    return _running.get(None)


@contextlib.contextmanager
def as_running_call(call: RunningCall) -> Iterator[None]:
    """Context manager in which a call is the running one."""
    token = _running.set(call)
    try:
        yield
    finally:
        _running.reset(token)
