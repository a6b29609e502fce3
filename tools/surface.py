"""Names and defaults that users see, and which of their changes CHANGELOG.md does not mention.

    python -m tools.surface

writes those of a release to tests/fixtures/surface.json, as `make release` does. Until the next
release, tests compare the present ones with the file: what is new, changed or removed has to be in
an item of the section "Unreleased".
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from official.xlnet.commands.declarations import COMMON, Parameter, declaration
from official.xlnet.configs import registry
from official.xlnet.configs.base import SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS, VERBS
from official.xlnet.projects import PROJECTS
from tools import api_page

ROOT = pathlib.Path(__file__).parents[1]
FILE = ROOT / "tests/fixtures/surface.json"
CHANGELOG = ROOT / "CHANGELOG.md"
CORE = "core"
_REQUIRED = "required"
_PACKAGE = "official.xlnet."

# {project, or CORE: {kind, place and name of an entry, separated by spaces: its default or ""}}
Surface = dict[str, dict[str, str]]


def main() -> None:
    """Writes the file."""
    FILE.write_text(json.dumps(surface(), indent=0, sort_keys=True) + "\n", encoding="utf-8")


def surface() -> Surface:
    """Returns what users see at present."""
    entries: Surface = {project: {} for project in (CORE, *PROJECTS)}
    for found in (_verbs(), _keys(), _names_of_tables(), _metrics(), _python_names()):
        for module, entry, default in found:
            entries[_project_of(module)][entry] = default
    return entries


@dataclasses.dataclass(frozen=True)
class Difference:
    """Something new, changed or removed.

    Attributes:
      entry: kind, place and name.
      section: the section of the changelog that it belongs to.
      default: its new default; "" if that has not changed.
    """

    entry: str
    section: str
    default: str = ""

    def is_in(self, item: str) -> bool:
        """Whether an item of the changelog mentions it."""
        kind, place, name = _parts(self.entry)
        code = " ".join(re.findall("`[^`]+`", item))
        places = [place.rpartition(".")[2]] if kind in ("argument", "member") else []
        if kind == "flag":
            places = [place, "verbs", "commands"]
        is_in_place = not places or any(_has(item, text) for text in places)
        has_default = not self.default or _has(code, self.default.strip("'"))
        return _has(code, name) and is_in_place and has_default

    def __str__(self) -> str:
        kind, place, name = _parts(self.entry)
        line = f"`{name}`"
        if place:
            line += f" of `{place}`"
        if self.default:
            line += f", whose default is `{self.default}`"
        return f"CHANGELOG.md, Unreleased, {self.section}: expected an item with {line} ({kind})"


def differences(before: Surface, now: Surface) -> list[Difference]:
    """Returns how two differ, in the projects that both have."""
    found = []
    for project in before.keys() & now.keys():
        old, new = before[project], now[project]
        for entry in sorted(new.keys() | old.keys()):
            if entry not in old:
                found.append(Difference(entry, "Added"))
            elif entry not in new:
                found.append(Difference(entry, "Removed"))
            elif new[entry] != old[entry]:
                found.append(Difference(entry, "Changed", new[entry]))
    return found


def unmentioned(found: list[Difference], changelog: str) -> list[Difference]:
    """Returns the differences that no item of the section "Unreleased" mentions."""
    _, _, rest = changelog.partition("\n## Unreleased\n")
    section = rest.partition("\n## ")[0]
    items = re.split(r"\n(?=- )|\n\n", section)
    return [one for one in found if not any(one.is_in(item) for item in items)]


def _parts(entry: str) -> tuple[str, str, str]:
    """Kind, place ("" for some) and name of an entry."""
    kind, _, rest = entry.partition(" ")
    place, _, name = rest.rpartition(" ")
    return kind, place, name


def _has(text: str, name: str) -> bool:
    """Whether a text has a name that is no part of a longer one."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _project_of(module: str) -> str:
    _, is_in_project, rest = module.removeprefix(_PACKAGE).partition("projects.")
    return rest.partition(".")[0] if is_in_project else CORE


def _verbs() -> Iterator[tuple[str, str, str]]:
    for verb, module in VERBS.modules.items():
        yield module, f"verb {verb}", ""
        for flag in declaration(verb).flags:
            yield module, f"flag {verb} {flag.name}", _default_of_flag(flag)
    for flag in COMMON:
        yield "", f"flag {flag.name}", _default_of_flag(flag)


def _default_of_flag(flag: Parameter) -> str:
    return repr(flag.default) if flag.has_default else _REQUIRED


def _keys() -> Iterator[tuple[str, str, str]]:
    sections: list[Any] = [field.default_factory for field in dataclasses.fields(XLNetConfig)]
    sections += [SETTINGS[name] for name in SETTINGS.names()]
    for section in dict.fromkeys(sections):
        if not section.__module__.startswith(_PACKAGE):
            continue
        own_keys = inspect.get_annotations(section)
        for field in dataclasses.fields(section):
            if field.name in own_keys:
                default = repr(field.default)
                if field.default is dataclasses.MISSING:
                    default = ""
                yield section.__module__, f"key {section.section} {field.name}", default


def _names_of_tables() -> Iterator[tuple[str, str, str]]:
    for table in vars(registry).values():
        if isinstance(table, registry.Registry) and table not in (VERBS, SETTINGS):
            table.names()  # Enters those of tasks.
            for name, module in table.modules.items():
                yield module, f"name {table.key.replace(' ', '_')} {name}", ""


def _metrics() -> Iterator[tuple[str, str, str]]:
    for task in TASKS.names():
        module = TASKS.modules.get(task)
        if module is not None:
            for metric in TASKS[task].metrics:
                yield module, f"metric {task} {metric}", ""


def _python_names() -> Iterator[tuple[str, str, str]]:
    for title, definitions in api_page.entries().items():
        for module, node in definitions:
            yield module, f"python {node.name}", ""
            if isinstance(node, ast.FunctionDef):
                for argument, default in _arguments(node).items():
                    yield module, f"argument {node.name} {argument}", default
            elif title != "Configuration":  # Keys have entries.
                for member, default in _members(node).items():
                    yield module, f"member {node.name} {member}", default


def _arguments(function: ast.FunctionDef) -> dict[str, str]:
    """{argument: its default}"""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: Mapping[str, ast.expr | None] = dict(
        zip([x.arg for x in positional[::-1]], arguments.defaults[::-1], strict=False)
    ) | dict(zip([x.arg for x in arguments.kwonlyargs], arguments.kw_defaults, strict=True))
    found = {}
    for argument in (*positional, *arguments.kwonlyargs):
        default = defaults.get(argument.arg)
        if argument.arg not in ("self", "cls"):
            found[argument.arg] = ast.unparse(default) if default is not None else _REQUIRED
    return found


def _members(node: ast.ClassDef) -> dict[str, str]:
    """{public attribute, method or argument: its default}"""
    found: dict[str, str] = {}
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            found |= _arguments(part)
        elif isinstance(part, ast.FunctionDef):
            found[part.name] = ""
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            found[part.target.id] = ast.unparse(part.value) if part.value else _REQUIRED
        elif isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name):
            found[part.targets[0].id] = ast.unparse(part.value)
    return {name: default for name, default in found.items() if not name.startswith("_")}


if __name__ == "__main__":
    main()
