"""Options that have become verbs: calls by the former spelling are calls of the other verb.

A verb that was an option of another one, as `words` was `--words` of `score`, registers that
spelling with itself; see `official.xlnet.api.verbs.register_verb`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from official.xlnet.files.registry import FORMER_OPTIONS


def takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a public function has a parameter, by its name or a former one."""
    former_names = getattr(function, "former_names", {})
    return name in inspect.signature(function).parameters or name in former_names


def selects_nothing(spelling: str, value: Any) -> bool:
    """Whether a former option has the value that it had without a choice, e.g. `folds=0`.

    Args:
      spelling: its verb and name, "verb.option".
      value: its value in Python, or the text of a flag.
    """
    default = FORMER_OPTIONS[spelling].former[spelling]
    if isinstance(value, str):
        no_choice = ("", "0", "f", "false", "n", "no") if default is False else ("", str(default))
        return value.lower() in no_choice
    return value is None or value == default


def former_call(
    function: Callable[..., Any], args: Sequence[Any], arguments: Mapping[str, Any]
) -> Callable[[], Any] | None:
    """Returns the call that a call with options of former versions stands for.

    Args:
      function: the function, whose name is that of its verb.
      args: its arguments without a name.
      arguments: its arguments by name, some of which it does not have.

    Returns:
      The call; None if none of the unknown arguments is a former option.
    """
    parameters = inspect.signature(function).parameters
    verb = function.__name__
    is_former = {name: FORMER_OPTIONS.is_known(f"{verb}.{name}") for name in arguments}
    options = [name for name in arguments if name not in parameters and is_former[name]]
    if not options:
        return None
    chosen = [name for name in options if not selects_nothing(f"{verb}.{name}", arguments[name])]
    rest = {name: value for name, value in arguments.items() if name not in options}
    if not chosen:
        return lambda: function(*args, **rest)
    other = FORMER_OPTIONS[f"{verb}.{chosen[0]}"].function
    logging.warning("%s(%s=…) is now: %s", verb, chosen[0], other.__name__)
    rest |= dict(zip(parameters, args, strict=False))
    # An option of yet another verb is passed on, and refused.
    for name in chosen:
        if takes(other, name) or name != chosen[0]:
            rest[name] = arguments[name]
    # What the other verb has no use for may still be written as None.
    rest = {name: value for name, value in rest.items() if takes(other, name) or value is not None}
    return lambda: other(**rest)
