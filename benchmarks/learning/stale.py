"""Tables of pages that other code measured, with the command above each that renews it.

    python -m benchmarks.learning.stale
    python -m benchmarks.learning.stale --renew=ablation.md:cues
    python -m benchmarks.learning.stale --renew=all       # Each command once.

A table is stale if the end of it has other digests than today's code, recipes and command
(`harness.tables.measured_with`, `command_digest`), or none. The code is what a training step with
its recipes executes, and the modules in the constant `CODE` of the experiment. The last line is
JSON: {table: command}.
"""

from __future__ import annotations

import ast
import json
import pathlib
import re
import subprocess

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.sources import ROOT
from benchmarks.harness.tables import command_above, command_digest, measured_with

_TABLE = re.compile(r"<!-- table: (\S+) -->.*?<!-- end([^>]*)-->", re.S)
_EXPERIMENT = re.compile(r"-m (benchmarks\.learning[\w.]*)")


def main() -> None:
    flags = parse(__doc__, renew=flag(None, "PAGE:TABLE to measure again, or all"))
    docs = pathlib.Path("docs")
    if flags.renew:
        found = stale(docs)
        commands = found.values() if flags.renew == "all" else [found[flags.renew]]
        for command in dict.fromkeys(commands):
            subprocess.run(command, shell=True, check=True)
    print(json.dumps(stale(docs), indent=1))


def stale(docs: pathlib.Path) -> dict[str, str]:
    """Returns {PAGE:TABLE: command above it} of the tables that today's code did not measure."""
    found = {}
    for page in sorted(docs.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for table in _TABLE.finditer(text):
            command = command_above(text, table[1])
            if command and measured_today(command, table[2]) != _entries(table[2]):
                found[f"{page.name}:{table[1]}"] = command
    return found


def measured_today(command: str, end: str) -> set[str]:
    """Returns what the end of a table would have if today's code had measured it.

    Args:
      command: the command above the table.
      end: the end of the table, which names the recipes.
    """
    code = code_of(command)
    recipes = [entry.split()[0] for entry in _entries(end) if entry.startswith("configs/")]
    today = {command_digest(command)}
    for recipe in recipes:
        today |= {*measured_with(recipe, code=code)}
    return today if recipes else today | {*measured_with(code=code)}


def code_of(command: str) -> tuple[str, ...]:
    """Returns the constant `CODE` of the experiment that a command runs; the module is parsed."""
    match = _EXPERIMENT.search(command)
    assert match
    folder = ROOT.joinpath(*match[1].split("."))
    path = folder / "__main__.py" if folder.is_dir() else folder.with_suffix(".py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CODE":
            return ast.literal_eval(node.value)
    return ()


def _entries(end: str) -> set[str]:
    """The entries of the end of a table."""
    return {entry.strip() for entry in end.lstrip(": ").split(",") if entry.strip()}


if __name__ == "__main__":
    main()
