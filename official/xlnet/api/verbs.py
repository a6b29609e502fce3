"""Verbs of the `xlnet` command: public functions in modules that import nothing heavy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from official.xlnet.configs.registry import VERBS
from official.xlnet.files.registry import FORMER_OPTIONS

Function = TypeVar("Function", bound=Callable[..., Any])

PREPARE, TRAIN, USE, INSPECT = (
    "Prepare data",
    "Train and evaluate",
    "Use a model",
    "Look inside",
)
# Keys of the results of several verbs: {key: what it counts}, in the order of the line that says
# them. Of keys that count the same the first is read: beside the `steps` of a run of fine-tuning,
# `step` is that of its best checkpoint.
USUAL_COUNTS = {
    "steps": "steps",
    "step": "steps",
    "documents": "documents",
    "rows": "rows",
    "examples": "rows",
    "texts": "texts",
    "pairs": "pairs",
    "runs": "runs",
    "tokens": "tokens",
    "windows": "windows",
    "targets": "targets",
}
GROUPS = (PREPARE, TRAIN, USE, INSPECT)  # Of `xlnet --help`, in this order; others follow.


class Verb:
    """A verb of the command line.

    Attributes:
      name: what a user types, one or two words.
      function: the function that it calls; its parameters are the flags.
      positional: see `register_verb`.
      group: see `register_verb`.
      former: see `register_verb`.
      report: see `register_verb`.
      counts: see `register_verb`.
      details: see `register_verb`.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        positional: str,
        group: str,
        former: Mapping[str, Any],
        report: Callable[[Any, Mapping[str, Any]], Any] | None,
        counts: Mapping[str, str],
        details: Callable[[], str] | None,
    ):
        self.name = name
        self.function = function
        self.positional = positional
        self.group = group
        self.former = dict(former)
        self.report = report
        self.counts = dict(counts)
        self.details = details
        wrapper: Any = self
        functools.update_wrapper(wrapper, function)  # Registries name its module.


def register_verb(
    name: str,
    *,
    positional: str = "",
    group: str = "Others",
    former: Mapping[str, Any] | None = None,
    report: Callable[[Any, Mapping[str, Any]], Any] | None = None,
    counts: Mapping[str, str] | None = None,
    details: Callable[[], str] | None = None,
) -> Callable[[Function], Function]:
    """Returns a decorator that makes a public function a verb of the `xlnet` command.

    The flags are the parameters whose types a flag can hold, with the rules of their annotations,
    their defaults, and their texts under `Args:`. The first line of the docstring is shown by
    `xlnet --help`, and so is the command that its example begins with, behind `$`. What the
    function returns is printed as JSON, as the last line.

    The module of the function should import nothing heavy, as help and checks of arguments need it;
    the function imports what it needs, after it has read its configuration.

    Args:
      name: what a user types: one word, or two, such as `inspect records`.
      positional: the parameter that arguments without a flag belong to; default: none.
      group: title in `xlnet --help` to be listed under.
      former: {"verb.option": value}: options of other verbs that did this in former versions, with
        the value that selected nothing; `{"score.words": False}` makes `xlnet score --words` a
        call of this verb.
      report: function of the result and the arguments to what is printed; default: the result.
      counts: {key of the result: the plural of what it counts}, for the line before the JSON, such
        as `done: 12 films`, in addition to `USUAL_COUNTS`.
      details: returns a text that the help has after the description, such as names of a registry,
        which also has those of other packages; default: none.

    Example:
      >>> @register_verb("count")
      ... @public()
      ... def count(input: Path, lowercase: bool = False) -> dict[str, int]: ...
    """

    def decorate(function: Function) -> Function:
        verb = Verb(name, function, positional, group, former or {}, report, counts or {}, details)
        VERBS.register(name)(verb)
        for spelling in verb.former:
            FORMER_OPTIONS.register(spelling)(verb)
        return function

    return decorate
