"""Flags of a verb: from the signature and the docstring of its function.

A parameter whose annotation has a type that a flag can hold is a flag of the same name: `str`,
`int`, `float`, `bool`, a list of these, or {path: weight}. Its rules are in the help; its text is
that of the docstring.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags
from absl.flags import FlagValues

from official.xlnet.api.verbs import Verb
from official.xlnet.configs.registry import VERBS
from official.xlnet.files.arguments import COMMAS, IN_PYTHON, PathRule
from official.xlnet.files.schema import OneOf
from official.xlnet.files.schema.annotations import parts_of_union, without_rules

_SCALARS = (bool, int, float, str)
_SECTION = re.compile(r"^(Args|Returns|Raises|Example):$", re.MULTILINE)
# A line `name: text` under `Args:`, and the lines that continue it.
_ARGUMENT = re.compile(r"^(\w+): ((?:.|\n(?! *\w+:)|\n {2,})*)", re.MULTILINE)


def declaration(name: str) -> Declaration:
    """Returns the declaration of a verb; imports the module of its function.

    Args:
      name: the name of a verb.
    """
    return _declaration(VERBS[name])


@functools.cache
def _declaration(verb: Verb) -> Declaration:
    return Declaration(verb)


class Declaration:
    """What the command line takes from the function of a verb.

    Args:
      verb: the verb.
    """

    def __init__(self, verb: Verb):
        self.verb = verb

    @functools.cached_property
    def sections(self) -> Mapping[str, str]:
        """The sections of the docstring by name; `""` is the description."""
        text = inspect.getdoc(self.verb.function) or ""  # Without one in `python -OO`.
        description, *rest = _SECTION.split(text)
        sections = zip(rest[::2], map(inspect.cleandoc, rest[1::2]), strict=True)
        return {"": description.strip(), **dict(sections)}

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.sections[""].partition("\n")[0]

    @property
    def example(self) -> str:
        """The command of the docstring's example, which begins with `$`."""
        lines = self.sections.get("Example", "").partition("\n\n")[0]
        return lines.removeprefix("$ ") if lines.startswith("$ ") else ""

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that can be flags, by name."""
        function = self.verb.function
        types = typing.get_type_hints(function, include_extras=True)
        texts = dict(_ARGUMENT.findall(self.sections.get("Args", "")))
        parameters = {}
        for name, declared in inspect.signature(function).parameters.items():
            text = " ".join(texts.get(name, "").split())
            parameter = Parameter.of(name, types.get(name, Any), declared.default, text)
            if parameter is not None:
                parameters[name] = parameter
        return parameters

    @property
    def former_names(self) -> dict[str, str]:
        """{former name of a parameter: its name}, see `public`."""
        return getattr(self.verb.function, "former_names", {})

    @property
    def flags(self) -> list[Parameter]:
        """The parameters that are flags: all except the positional one."""
        return [x for x in self.parameters.values() if x.name != self.verb.positional]

    def flag_table(self, common: Sequence[Parameter]) -> FlagValues:
        """Returns the flags, those that all verbs have included."""
        table = FlagValues()
        table.set_gnu_getopt(True)  # Flags may follow positional arguments.
        for parameter in (*common, *self.flags):
            parameter.define(table)
        return table

    def values(self, table: FlagValues, rest: Sequence[str]) -> dict[str, Any]:
        """The arguments of a call: of the flags that were given, and those without a flag.

        Raises:
          flags.Error: there is no argument for the positional parameter, or more than it takes.
        """
        arguments = {}
        for parameter in self.flags:
            if table[parameter.name].present or not parameter.has_default:
                arguments[parameter.name] = parameter.decoded(table[parameter.name].value)
        positional = self.verb.positional
        if positional:
            if len(rest) != 1:
                got = " ".join(rest) or "none"
                raise flags.Error(f"expected one argument, {positional}, got {got}")
            arguments[positional] = rest[0]
        elif rest:
            message = f"unexpected argument {rest[0]!r}; flags are written --name=value"
            raise flags.Error(message)
        return arguments


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter that can be a flag.

    Attributes:
      name: its name.
      value_type: the type of its value, or of each item of a list or key of a mapping.
      container: None, `list` or `dict`.
      rules: the rules of its annotation.
      default: its default; None without one.
      text: its description.
      has_default: whether it has one.
      is_required: whether the flag has to be given.
    """

    name: str
    value_type: type
    container: type | None
    rules: tuple[Any, ...]
    default: Any
    text: str
    has_default: bool = True
    is_required: bool = False

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any, text: str) -> Parameter | None:
        """Returns the parameter of a name and an annotation; None if no flag can hold it."""
        outer = [x for x in map(without_rules, parts_of_union(annotation)) if IN_PYTHON not in x[1]]
        options = [x for part, _ in outer for x in parts_of_union(part)]
        rules = tuple(rule for _, some in outer for rule in some)
        container: type | None = None
        for option in options:
            origin, parts = typing.get_origin(option), typing.get_args(option)
            item, item_rules = without_rules(parts[0]) if parts else (Any, ())
            if option in _SCALARS and container is None:
                scalar: Any = option
            elif origin in (collections.abc.Sequence, list, tuple) and item in _SCALARS:
                scalar, container, rules = item, list, (*rules, *item_rules)
            elif origin is collections.abc.Mapping and item in _SCALARS:
                scalar, container, rules = item, dict, (*rules, *item_rules)
        if not any(option in _SCALARS for option in options) and container is None:
            return None
        has_default = default is not inspect.Parameter.empty
        is_required = not has_default and type(None) not in options
        default = default if has_default else None
        return cls(name, scalar, container, rules, default, text, has_default, is_required)

    @property
    def is_path(self) -> bool:
        """Whether it is the path of a file or directory."""
        return any(isinstance(rule, PathRule) for rule in self.rules)

    def define(self, table: FlagValues) -> None:
        """Adds the flag to a table."""
        options: dict[str, Any] = {"flag_values": table, "required": self.is_required}
        default = list(self.default) if isinstance(self.default, tuple) else self.default
        empty: Any = None if self.is_required else []
        if self.container and COMMAS in self.rules:
            flag = _JoinedListFlag(
                flags.ListParser(),
                flags.CsvListSerializer(","),
                self.name,
                default or empty,
                self.text,
            )
            flags.DEFINE_flag(flag, **options)
        elif self.container:
            flags.DEFINE_multi_string(self.name, default or empty, self.text, **options)
        else:
            define: Any = {
                bool: flags.DEFINE_bool,
                int: flags.DEFINE_integer,
                float: flags.DEFINE_float,
                str: flags.DEFINE_string,
            }
            if self.value_type is str and default is not None:
                default = str(default)  # Flags of text have text as default.
            define[self.value_type](self.name, default, self.text, **options)

    def decoded(self, value: Any) -> Any:
        """The value of the flag as the argument of the function."""
        if self.container is dict:
            return dict(map(weighted, value))
        if self.container and self.value_type is int:
            return [int(x) if re.fullmatch(r"-?\d{1,18}", x) else x for x in value]
        return value


class _JoinedListFlag(flags.Flag):
    """A list separated by commas; a flag that is repeated adds its items."""

    value: Any

    def parse(self, argument: Any) -> None:
        earlier = list(self.value) if self.present else []
        super().parse(argument)
        self.value = [*earlier, *self.value]


# Flags of all verbs.
COMMON = (
    Parameter(
        name="import",
        value_type=str,
        container=list,
        rules=(COMMAS,),
        default=(),
        text="extension modules to import before the command.",
    ),
    Parameter(
        name="verbosity",
        value_type=str,
        container=None,
        rules=(OneOf(("error", "warning", "info", "debug")),),
        default="warning",
        text="least severe messages to show; from info on, also messages of TensorFlow.",
    ),
)


def weighted(argument: str) -> tuple[str, float]:
    """The file of FILE or FILE=WEIGHT, and its weight.

    Example:
      >>> weighted("news.json=0.5")
      ('news.json', 0.5)
    """
    path, equals, weight = argument.rpartition("=")
    if not equals:
        return argument, 1.0
    try:
        return path, float(weight)
    except ValueError:
        return argument, 1.0  # A file with = in its name.
