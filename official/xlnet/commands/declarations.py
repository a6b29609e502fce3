"""Flags and help of a verb: from the signature and the docstring of its function.

The source is parsed, not imported, so that `xlnet VERB --help` does not load TensorFlow. A
parameter whose annotation has a type that a flag can hold is a flag of the same name: `str`, `int`,
`float`, `bool`, a list of these, or {path: weight}. Its rules are in the help; its text is that of
the docstring.
"""

from __future__ import annotations

import ast
import builtins
import collections
import collections.abc
import dataclasses
import functools
import importlib
import importlib.util
import inspect
import pathlib
import re
import textwrap
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import flags

from official.xlnet.files.arguments import COMMAS, IN_PYTHON, PathRule
from official.xlnet.files.schema import OneOf, Range, parts_of_union, without_rules

# Modules that annotations and defaults take names from; none of them imports TensorFlow.
_LIGHT = re.compile(
    r"typing|collections\.abc|numbers|data_prep\.settings|official\.xlnet\."
    r"(files\.\w+|configs\.(choices|registry|validation)|data\.(lost_rows|reading|result_files)|tokenization\.blanks)"
)
_SCALARS = (bool, int, float, str)
_SECTION = re.compile(r"^(Args|Returns|Raises|Example):$", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Verb:
    """A verb of the command line and the function that it calls.

    Attributes:
      module: the module of the function.
      name: its name.
      positional: the parameter that arguments without a flag belong to, if any.
      terminal: a module whose `run(function, **arguments)` calls the function for a terminal.
    """

    module: str
    name: str
    positional: str = ""
    terminal: str = ""

    @functools.cached_property
    def _source(self) -> str:
        spec = importlib.util.find_spec(self.module)
        assert spec and spec.origin
        return pathlib.Path(spec.origin).read_text("utf-8")

    @functools.cached_property
    def _function(self) -> ast.FunctionDef:
        """The function, parsed alone: `xlnet --help` shows all verbs."""
        place = self._source.index(f"\ndef {self.name}(")
        start = self._source.rindex("\n@public(", 0, place)
        end = self._source.index('"""\n', self._source.index('"""', place) + 3) + 3
        return typing.cast(ast.FunctionDef, ast.parse(self._source[start:end]).body[0])

    @functools.cached_property
    def sections(self) -> Mapping[str, str]:
        """The sections of the docstring by name; `""` is the description."""
        text = ast.get_docstring(self._function) or ""
        description, *rest = _SECTION.split(text)
        sections = zip(rest[::2], map(inspect.cleandoc, rest[1::2]), strict=True)
        return {"": description.strip(), **dict(sections)}

    @property
    def example(self) -> str:
        """The command of the docstring's example, which begins with `$`."""
        lines = self.sections.get("Example", "").partition("\n\n")[0]
        return lines.removeprefix("$ ") if lines.startswith("$ ") else ""

    @functools.cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters that can be flags, by name."""
        function, names = self._function, _Names(ast.parse(self._source))
        texts = dict(
            re.findall(r"^(\w+): ((?:.|\n(?! *\w+:)|\n {2,})*)", self.sections["Args"], re.M)
        )
        arguments = [*function.args.args, *function.args.kwonlyargs]
        defaults = [*function.args.defaults, *filter(None, function.args.kw_defaults)]
        first = len(function.args.args) - len(function.args.defaults)
        parameters = {}
        for place, argument in enumerate(arguments):
            default = inspect.Parameter.empty
            if first <= place < first + len(defaults):
                default = names.value(defaults[place - first])
            kind = names.value(argument.annotation) if argument.annotation else Any
            text = " ".join(texts.get(argument.arg, "").split())
            parameter = Parameter.of(argument.arg, kind, default, text)
            if parameter:
                parameters[argument.arg] = parameter
        return parameters

    @property
    def former_names(self) -> dict[str, str]:
        """{former name of a parameter: its name}, see `public`."""
        for decorator in self._function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "public":
                return {x.arg or "": ast.literal_eval(x.value) for x in decorator.keywords}
        return {}

    def flag_table(self, common: Sequence[Parameter]) -> flags.FlagValues:
        """Returns the flags, those that all verbs have included."""
        table = flags.FlagValues()
        table.set_gnu_getopt(True)  # Flags may follow positional arguments.
        for parameter in (*common, *self.parameters.values()):
            if parameter.name != self.positional:
                parameter.define(table)
        return table

    def values(self, table: flags.FlagValues, rest: Sequence[str]) -> dict[str, Any]:
        """The arguments of a call: of the flags that were given, and those without a flag.

        Raises:
          flags.Error: there is no argument for the positional parameter, or more than it takes.
        """
        arguments = {
            name: parameter.decoded(table[name].value)
            for name, parameter in self.parameters.items()
            if name != self.positional and (table[name].present or not parameter.has_default)
        }
        if self.positional:
            if len(rest) != 1:
                got = " ".join(rest) or "none"
                raise flags.Error(f"expected one argument, {self.positional}, got {got}")
            arguments[self.positional] = rest[0]
        return arguments

    def help(self, common: Sequence[Parameter]) -> str:
        """Returns what the verb does, its example and its flags."""
        example = self.example.replace("\n", "\n  ")
        flags = [x.help() for x in self.parameters.values() if x.name != self.positional]
        flags = ["flags:", *flags, "flags of all verbs:", *(x.help() for x in common)]
        return "\n".join([f"{self.sections['']}\n\nExample:\n  {example}\n", *flags])

    def load(self) -> Callable[..., Any]:
        """Imports the function."""
        function = getattr(importlib.import_module(self.module), self.name)
        if not self.terminal:
            return function
        return functools.partial(importlib.import_module(self.terminal).run, function)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter that can be a flag.

    Attributes:
      name: its name.
      kind: the type of its value, or of each item of a list or key of a mapping.
      container: None, `list` or `dict`.
      rules: the rules of its annotation.
      default: its default; None without one.
      text: its description.
      has_default: whether it has one.
      is_required: whether the flag has to be given.
    """

    name: str
    kind: type
    container: type | None
    rules: tuple[Any, ...]
    default: Any
    text: str
    has_default: bool = True
    is_required: bool = False

    @classmethod
    def of(cls, name: str, kind: Any, default: Any, text: str) -> Parameter | None:
        """Returns the parameter of a name and an annotation; None if no flag can hold it."""
        outer = [x for x in map(without_rules, parts_of_union(kind)) if IN_PYTHON not in x[1]]
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

    def define(self, table: flags.FlagValues) -> None:
        """Adds the flag to a table."""
        options: dict[str, Any] = {"flag_values": table, "required": self.is_required}
        default = list(self.default) if isinstance(self.default, tuple) else self.default
        empty: Any = None if self.is_required else []
        if self.container and COMMAS in self.rules:
            flags.DEFINE_list(self.name, default or empty, self.text, **options)
        elif self.container:
            flags.DEFINE_multi_string(self.name, default or empty, self.text, **options)
        else:
            define: Any = {
                bool: flags.DEFINE_bool,
                int: flags.DEFINE_integer,
                float: flags.DEFINE_float,
                str: flags.DEFINE_string,
            }
            if self.kind is str and default is not None:
                default = str(default)  # Flags of text have text as default.
            define[self.kind](self.name, default, self.text, **options)

    def help(self) -> str:
        """The flag, what it may be, its default and its description, in lines of a terminal."""
        words = ["|".join(rule.words) for rule in self.rules if isinstance(rule, OneOf)]
        names = {bool: "", int: "=N", float: "=NUMBER", str: "=TEXT"}
        paths = any(isinstance(rule, PathRule) for rule in self.rules)
        value = f"={words[0]}" if words else "=PATH" if paths else names[self.kind]
        is_set = self.default not in (None, "", (), False)
        notes = ["required"] * self.is_required + [f"default: {self.default}"] * is_set
        notes += [str(rule) for rule in self.rules if isinstance(rule, Range)]
        text = self.text[:1].upper() + self.text[1:] + f" ({'; '.join(notes)})" * bool(notes)
        lines = textwrap.wrap(text, 82, break_on_hyphens=False)
        lines = [" " * 6 + line for line in lines]
        no = "[no]" if self.kind is bool else ""
        return "\n".join([f"  --{no}{self.name}{value}", *lines])

    def checked(self, value: Any) -> Any:
        """The argument of the function after the rules of its items.

        Raises:
          ConfigError: a rule does not hold.
        """

        def check(item: Any) -> Any:
            for rule in self.rules:
                is_known = item is not None and (isinstance(item, str) == (self.kind is str))
                if is_known and hasattr(rule, "check"):
                    found = rule.check(item, self.name)
                    item = item if found is None else found
            return item

        if isinstance(value, dict):
            return {check(name): weight for name, weight in value.items()}
        return list(map(check, value)) if isinstance(value, list) else check(value)

    def decoded(self, value: Any) -> Any:
        """The value of the flag as the argument of the function."""
        if self.container is dict:
            return dict(map(_weighted, value))
        if self.container and self.kind is int:
            return [int(x) if re.fullmatch(r"-?\d{1,18}", x) else x for x in value]
        return value


class _Names(collections.UserDict):
    """Names of a module's annotations and defaults; `Any` for those of modules that are heavy."""

    def __init__(self, tree: ast.Module):
        super().__init__()
        self._modules = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        self._aliases = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }

    def value(self, node: ast.expr) -> Any:
        """The value of an expression of the module."""
        code = compile(ast.Expression(node), "annotation", "eval")
        return eval(code, {"__builtins__": {}}, self)

    def __missing__(self, name: str) -> Any:
        module, original = self._modules.get(name, ("", name))
        if _LIGHT.fullmatch(module):
            return getattr(importlib.import_module(module), original)
        if name in self._aliases:
            return self.value(self._aliases[name])
        return getattr(builtins, name, _Unknown())


class _Unknown:
    """A type of a module that is not imported, or an attribute of one."""

    def __getattr__(self, name: str) -> _Unknown:
        return self

    def __or__(self, other: Any) -> Any:
        return typing.Union[Any, other]  # noqa: UP007

    __ror__ = __or__

    def __call__(self, *args: Any) -> None:
        pass


def _weighted(argument: str) -> tuple[str, float]:
    """The file of FILE or FILE=WEIGHT, and its weight.

    Example:
      >>> _weighted("news.json=0.5")
      ('news.json', 0.5)
    """
    path, equals, weight = argument.rpartition("=")
    if not equals:
        return argument, 1.0
    try:
        return path, float(weight)
    except ValueError:
        return argument, 1.0  # A file with = in its name.
