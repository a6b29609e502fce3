"""Arguments of the public function that is running, checked against its annotations."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from official.xlnet.errors import ArgumentTypeError
from official.xlnet.files.arguments import PathRule
from official.xlnet.files.schema import conform, options


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


def check_arguments(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, str]:
    """Conforms each argument to its annotation, or to the type of its default; see `conform`.

    Args:
      function: the function.
      arguments: {parameter: value}, changed in place. Paths are checked first; rules with an
        attribute `looks_up` last, as they look for files.

    Returns:
      {parameter with paths: their use}, see `PathRule`.

    Raises:
      ArgumentTypeError: an argument is of another type.
      ConfigError: an argument is out of range.
    """
    types = _types(function)
    uses = {}
    for name in sorted(arguments, key=lambda name: _order(types[name])):
        value = conform(arguments[name], types[name], name, ArgumentTypeError)
        arguments[name] = value
        matching = options(types[name], value)
        if matching:
            uses[name] = _use(matching[0])
    return uses


@functools.cache
def _types(function: Callable[..., Any]) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        has_type = parameter.default not in (None, parameter.empty)
        types[name] = type(parameter.default) if has_type else Any
    return types | typing.get_type_hints(function, include_extras=True)


def _order(annotation: Any) -> tuple[bool, bool]:
    """Sort key: paths come first, and last what has to be looked up."""
    return _is_looked_up(annotation), not _use(annotation)


def _is_looked_up(annotation: Any) -> bool:
    rules = getattr(annotation, "__metadata__", ())
    if any(getattr(rule, "looks_up", False) for rule in rules):
        return True
    return any(map(_is_looked_up, typing.get_args(annotation)))


def _use(annotation: Any) -> str:
    """Use of the paths of a type, see `PathRule`; empty for types without paths."""
    for rule in getattr(annotation, "__metadata__", ()):
        if isinstance(rule, PathRule) and rule.use:
            return rule.use
    uses = map(_use, typing.get_args(annotation))
    return next(filter(None, uses), "")
