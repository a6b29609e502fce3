"""Public functions: arguments are checked once, URLs become local paths, interrupts one line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from absl import logging

from official.xlnet.errors import StoppedError, XLNetError
from official.xlnet.files.arguments import require_outputs_apart
from official.xlnet.files.call_arguments import RunningCall, as_running_call, check_arguments
from official.xlnet.files.flags_in_messages import name_arguments
from official.xlnet.files.urls import local_paths

_P = ParamSpec("_P")
_T = TypeVar("_T")


def public(**former: str) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Decorator of public functions, whose signatures declare what their arguments may be.

    Each argument is conformed to its annotation, or to the type of its default, see `conform`.
    While the call runs, a URL of a `Path` is a local copy, and one of an `OutputFile`,
    `OutputDirectory` or `RunDirectory` a local path whose content is uploaded, see `local_paths`.
    Options that have become verbs of their own are understood, see `former_options`. `running_call`
    returns the call, with all arguments.

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
        defaults = {name: given.default for name, given in signature.parameters.items()}

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
            for old in former.keys() & kwargs.keys():
                logging.warning("%s is now called %s", old, former[old])
                kwargs[former[old]] = kwargs.pop(old)
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError:
                from official.xlnet.files.former_options import former_call

                other_call = former_call(call, args, kwargs)
                if other_call is not None:
                    return other_call()
                return function(*args, **kwargs)  # Python's own error names the function.
            try:
                uses = check_arguments(function, bound.arguments)
                require_outputs_apart(bound.arguments, uses)
                with local_paths(bound.arguments, uses) as named:
                    arguments = {**defaults, **bound.arguments}
                    with as_running_call(RunningCall(function.__name__, arguments, uses)):
                        return named(function(*bound.args, **bound.kwargs))
            except KeyboardInterrupt as error:
                raise StoppedError(*error.args or ["interrupted"]) from None
            except XLNetError as error:
                name_arguments(error)
                raise

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.former_names = former  # type: ignore[attr-defined]
        return call

    return decorate
