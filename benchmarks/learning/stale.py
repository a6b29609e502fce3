"""Tables of pages whose numbers today's code does not give, with the command above each.

    python -m benchmarks.learning.stale
    python -m benchmarks.learning.stale --renew=ablation.md:cues
    python -m benchmarks.learning.stale --renew=all       # Each command once.

A table is stale if its command or a recipe has changed since it was measured, or if its command at
a small size gives other numbers than it gave then (`harness.small_runs`). That takes some minutes.
The last line is JSON: {table: command}.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.small_runs import are_close, small_numbers
from benchmarks.harness.tables import command_above, command_digest, recipe_digests

_TABLE = re.compile(r"<!-- table: (\S+) -->.*?<!-- end([^>]*)-->", re.S)
_NUMBERS = "numbers "


def main() -> None:
    flags = parse(__doc__, renew=flag(None, "PAGE:TABLE to measure again, or all"))
    docs = pathlib.Path("docs")
    if flags.renew:
        tables = stale(docs)
        commands = tables.values() if flags.renew == "all" else [tables[flags.renew]]
        for command in dict.fromkeys(commands):
            subprocess.run(command, shell=True, check=True)
    print(json.dumps(stale(docs), indent=1))


def stale(docs: pathlib.Path) -> dict[str, str]:
    """Returns {PAGE:TABLE: command above it} of the tables whose numbers are not today's."""
    return {
        table: command
        for table, (command, end) in tables_of(docs).items()
        if changed(command, end) or not are_close(numbers_in(end), small_numbers(command))
    }


def tables_of(docs: pathlib.Path) -> dict[str, tuple[str, list[str]]]:
    """Returns {PAGE:TABLE: (command above it, entries of its end)} of all experiments' tables.

    Args:
      docs: folder of the pages; CONTRIBUTING.md is beside it.
    """
    tables = {}
    for page in sorted([*docs.glob("*.md"), *docs.parent.glob("CONTRIBUTING.md")]):
        text = page.read_text(encoding="utf-8")
        for table in _TABLE.finditer(text):
            if command := command_above(text, table[1]):
                entries = [entry.strip() for entry in table[2].lstrip(": ").split(",")]
                tables[f"{page.name}:{table[1]}"] = command, entries
    return tables


def changed(command: str, end: list[str]) -> list[str]:
    """Returns the command and those recipes, with today's digests, that a table does not have.

    Args:
      command: the command above the table.
      end: entries of the end of the table.
    """
    recipes = [entry.split()[0] for entry in end if entry.startswith("configs/")]
    today = [command_digest(command), *recipe_digests(*recipes)]
    return [entry for entry in today if entry not in end]


def numbers_in(end: list[str]) -> tuple[float, ...]:
    """Returns the numbers of its command at a small size that the end of a table has."""
    texts = [entry.removeprefix(_NUMBERS) for entry in end if entry.startswith(_NUMBERS)]
    return tuple(float(number) for text in texts for number in text.split())


if __name__ == "__main__":
    main()
