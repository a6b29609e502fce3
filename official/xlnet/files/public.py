"""Public functions: arguments are checked once, URLs become local paths, interrupts one line."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from absl import logging

from official.xlnet.errors import ArgumentTypeError, StoppedError, XLNetError
from official.xlnet.files.arguments import PathRule, require_outputs_apart
from official.xlnet.files.schema import conform, options
from official.xlnet.files.urls import local_paths

_P = ParamSpec("_P")
_T = TypeVar("_T")
_takes_flags = contextvars.ContextVar("takes_flags", default=False)
_FLAG = re.compile(r"(?<![^\s(])--(\w+)(=[\w.]+=[^\s;,)]+)?")  # Not in a name of a file.


def public(**former: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator of public functions, whose signatures declare what their arguments may be.

    Each argument is conformed to its annotation, or to the type of its default, see `conform`.
    While the call runs, a URL of a `Path` is a local copy, and one of an `OutputFile`,
    `OutputDirectory` or `RunDirectory` a local path whose content is uploaded, see `local_paths`.

    Args:
      **former: {former name of a parameter: its name}; the former one is taken, too, and logged.

    Raises:
      ArgumentTypeError: an argument is of another type.
      ConfigError: an argument is out of range, or an output would replace an input.
      TypeError: an argument is missing or unknown.
      StoppedError: the call was interrupted; notebooks show this `KeyboardInterrupt` in one line.

    Example:
      >>> @public()
      ... def predict(model: Path, inputs: Any, batch_size: Annotated[int, Range(1)] = 8): ...
    """

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            for old in former.keys() & kwargs.keys():
                logging.warning("%s is now called %s", old, former[old])
                kwargs[former[old]] = kwargs.pop(old)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's own error names the function.
            kinds = _kinds(function)
            uses = {}
            for name in sorted(bound.arguments, key=lambda name: not _use(kinds[name])):
                value = conform(bound.arguments[name], kinds[name], name, ArgumentTypeError)
                bound.arguments[name] = value
                for use in map(_use, options(kinds[name], value)[:1]):
                    uses[name] = use
            try:
                require_outputs_apart(bound.arguments, uses)
                with local_paths(bound.arguments, uses) as named:
                    return named(function(*bound.args, **bound.kwargs))
            except KeyboardInterrupt as error:
                raise StoppedError(*error.args or ["interrupted"]) from None
            except XLNetError as error:
                if not _takes_flags.get():
                    error.args = (_FLAG.sub(_argument, str(error)), *error.args[1:])
                raise

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


@contextlib.contextmanager
def called_with_flags() -> Iterator[None]:
    """Context manager in which messages name flags, `--output`, and not arguments of Python."""
    token = _takes_flags.set(True)
    try:
        yield
    finally:
        _takes_flags.reset(token)


def _argument(flag: re.Match[str]) -> str:
    """The argument of Python that a flag in a message stands for.

    Example:
      >>> _FLAG.sub(_argument, "see --max_lost; --set=task.epochs=3 or --format=text")
      'see max_lost; set=["task.epochs=3"] or format=text'
    """
    return f'{flag[1]}=["{flag[2][1:]}"]' if flag[2] else flag[1]


@functools.cache
def _kinds(function: Callable) -> dict[str, Any]:
    kinds = {
        name: Any if parameter.default in (None, parameter.empty) else type(parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    return kinds | typing.get_type_hints(function, include_extras=True)


def _use(kind: Any) -> str:
    """Use of the paths of a type, see `PathRule`; empty for types without paths."""
    rules = getattr(kind, "__metadata__", ())
    uses = [rule.use for rule in rules if isinstance(rule, PathRule)]
    return next(filter(None, [*uses, *map(_use, typing.get_args(kind))]), "")
