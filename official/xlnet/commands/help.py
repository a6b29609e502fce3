"""Help of the `xlnet` command: the verbs, and the flags of a verb."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from official.xlnet.api.verbs import GROUPS
from official.xlnet.commands.declarations import COMMON, Declaration, Parameter, declaration
from official.xlnet.files.registry import NameIn
from official.xlnet.files.schema import OneOf, Range

_USAGE = """\
usage: xlnet VERB [--flag=value ...]
{verbs}

`xlnet VERB --help` shows the flags of a verb.
"""


def usage(verbs: Sequence[str]) -> str:
    """Returns how to call the command, and what its verbs are.

    Args:
      verbs: the names of the verbs.
    """
    return _USAGE.format(verbs=_listing(verbs))


def _listing(verbs: Sequence[str]) -> str:
    """The verbs by group, each with the first line of its docstring and its example."""
    by_group: dict[str, list[str]] = {group: [] for group in GROUPS}
    for verb in verbs:
        by_group.setdefault(declaration(verb).verb.group, []).append(verb)
    lines = []
    for group, members in by_group.items():
        if members:
            lines += ["", f"{group}:"]
        for verb in members:
            declared = declaration(verb)
            lines.append(f"  {verb:<17} {declared.summary}")
            lines += [f"      {line}" for line in declared.example.splitlines()]
    return "\n".join(lines)


def verb_help(declared: Declaration) -> str:
    """Returns what the verb does, its example and its flags."""
    example = declared.example.replace("\n", "\n  ")
    lines = [declared.sections[""], ""]
    if declared.verb.details:
        lines += [declared.verb.details(), ""]
    lines += [f"Example:\n  {example}\n"]
    lines += ["flags:", *(flag_help(parameter) for parameter in declared.flags)]
    lines += ["flags of all verbs:", *(flag_help(parameter) for parameter in COMMON)]
    return "\n".join(lines)


def flag_help(flag: Parameter) -> str:
    """The flag, what it may be, its default and its description, in lines of a terminal."""
    words = ["|".join(rule.words) for rule in flag.rules if isinstance(rule, OneOf | NameIn)]
    if words:
        value = f"={words[0]}"
    elif flag.is_path:
        value = "=PATH"
    else:
        value = {bool: "", int: "=N", float: "=NUMBER", str: "=TEXT"}[flag.value_type]
    notes = ["required"] if flag.is_required else []
    if flag.default not in (None, "", (), False):
        notes.append(f"default: {flag.default}")
    notes += [str(rule) for rule in flag.rules if isinstance(rule, Range)]
    text = flag.text[:1].upper() + flag.text[1:]
    if notes:
        text += f" ({'; '.join(notes)})"
    lines = textwrap.wrap(text, 82, break_on_hyphens=False)
    no = "[no]" if flag.value_type is bool else ""
    return "\n".join([f"  --{no}{flag.name}{value}", *(" " * 6 + line for line in lines)])
