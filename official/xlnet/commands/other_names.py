"""Names of flags of former versions, and keys of the configuration that are typed as flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from absl import logging as absl_logging

from official.xlnet.commands.declarations import Parameter, declaration
from official.xlnet.commands.flag_uses import uses_of
from official.xlnet.files.former_options import selects_nothing, takes
from official.xlnet.files.registry import FORMER_OPTIONS


def as_called_today(verb: str, arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Returns a command in a former spelling as it is written today, and logs what has changed.

    Args:
      verb: the verb.
      arguments: its arguments.

    Example:
      >>> as_called_today("score", ["--words", "--unit=bits"])
      ('words', ['--unit=bits'])
    """
    today, rest = verb, list(arguments)
    typed = {argument.lstrip("-").partition("=")[0] for argument in arguments}
    for spelling in FORMER_OPTIONS.names():
        former_verb, _, option = spelling.rpartition(".")
        if former_verb != verb or not typed & {option, f"no{option}"}:
            continue
        other = FORMER_OPTIONS[spelling]
        is_switch = isinstance(other.former[spelling], bool)
        for use in reversed(uses_of(option, rest, is_switch)):  # From the end, as some go.
            has_effect = not selects_nothing(spelling, use.value)
            if has_effect and today == verb:
                today = other.name
                absl_logging.warning("%s --%s is now: xlnet %s", verb, option, today)
            is_understood = has_effect and (today != other.name or takes(other.function, option))
            if not is_understood:
                del rest[use.place : use.place + use.num_words]
    return today, _with_present_names(today, rest)


def _with_present_names(verb: str, arguments: Sequence[str]) -> list[str]:
    """Returns arguments with the flags' names of today, and logs which have changed."""
    present_names = declaration(verb).former_names
    renamed = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        present = present_names.get(flag.removeprefix("--"))
        if present is not None and flag.startswith("--"):
            absl_logging.warning("%s is now called --%s", flag, present)
            argument = f"--{present}{equals}{value}"
        renamed.append(argument)
    return renamed


def as_settings(arguments: Sequence[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Returns arguments in which keys of the configuration, typed as flags, are settings.

    Args:
      arguments: the arguments of a verb.
      parameters: its parameters, by name.

    Example:
      >>> as_settings(["--epochs=3", "--task=sst2"], declaration("finetune").parameters)
      ['--set=task.epochs=3', '--task=sst2']
    """
    if "set" not in parameters:
        return list(arguments)
    settings: list[str] = []
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        key = key_of(name) if argument.startswith("--") and name not in parameters else ""
        if key and not equals and rest and not rest[0].startswith("-"):
            equals, value = "=", rest.pop(0)
        settings.append(f"--set={key}={value}" if key and equals else argument)
    return settings


def key_of(name: str) -> str:
    """The key of the configuration, `section.key`, that a name stands for; empty for none."""
    from official.xlnet.configs.experiment import XLNetConfig  # Few commands need it here.

    section, _, key = name.rpartition(".")
    owners = [owner for owner in XLNetConfig().sections_of(key) if section in ("", owner)]
    return f"{owners[0]}.{key}" if len(owners) == 1 else ""
