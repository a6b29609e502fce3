"""Flags among the arguments of a verb, before they are parsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import flags

from official.xlnet.commands.declarations import Parameter, weighted


class FlagUse(NamedTuple):
    """A flag among arguments.

    Attributes:
      place: index of the argument.
      num_words: 1, or 2 for `--name value`.
      value: its value, as text.
    """

    place: int
    num_words: int
    value: str


def uses_of(name: str, arguments: Sequence[str], is_switch: bool) -> list[FlagUse]:
    """Returns where a flag is given, and with which values.

    Args:
      name: its name.
      arguments: the arguments of a verb.
      is_switch: whether it is true or false, and is written without a value.

    Example:
      >>> uses_of("runs", ["--task=sst2", "--runs", "3"], is_switch=False)
      [FlagUse(place=1, num_words=2, value='3')]
    """
    uses = []
    for place, argument in enumerate(arguments):
        if not argument.startswith("-"):
            continue
        flag, equals, value = argument.lstrip("-").partition("=")
        if is_switch and flag == f"no{name}":
            uses.append(FlagUse(place, 1, "false"))
        elif flag == name and equals:
            uses.append(FlagUse(place, 1, value))
        elif flag == name and is_switch:
            uses.append(FlagUse(place, 1, "true"))
        elif flag == name:
            uses.append(FlagUse(place, 2, "".join(arguments[place + 1 : place + 2])))
    return uses


def has_other_names(arguments: Sequence[str], parameters: Sequence[Parameter]) -> bool:
    """Whether an argument may be a flag by a name that the verb does not have today.

    Args:
      arguments: the arguments of a verb.
      parameters: its flags.
    """
    names = {parameter.name for parameter in parameters}
    names |= {f"no{parameter.name}" for parameter in parameters if parameter.value_type is bool}
    typed = [argument for argument in arguments if argument.startswith("-")]
    return any(argument.lstrip("-").partition("=")[0] not in names for argument in typed)


def require_one_value(arguments: Sequence[str], parameters: Sequence[Parameter]) -> None:
    """Raises `flags.Error` if a flag that holds one value has several, or a file several weights.

    Flags that are lists may be repeated: their items are joined.

    Args:
      arguments: the arguments of a verb.
      parameters: its flags.
    """
    for parameter in parameters:
        if parameter.container is list:
            continue
        uses = uses_of(parameter.name, arguments, is_switch=parameter.value_type is bool)
        values: dict[str, list[Any]] = {}  # Of the flag, or of each of its files.
        for use in uses:
            subject = f"--{parameter.name}"
            value: Any = use.value
            if parameter.container is dict:
                path, value = weighted(use.value)
                subject += f": {path}"
            values.setdefault(subject, []).append(value)
        for subject, values_of_subject in values.items():
            different = dict.fromkeys(values_of_subject)
            if len(different) > 1:
                got = " and ".join(map(repr, different))
                raise flags.Error(f"{subject}: expected one value, got {got}")
