"""The command line of a benchmark, as a table of its flags."""

from __future__ import annotations

import argparse
from typing import Any


def flag(default: Any, help: str, **options: Any) -> dict[str, Any]:
    """A flag of a command: a number, a text, a switch, or a comma-separated list.

    Args:
      default: value without the flag, which also tells the type; False for a switch.
      help: what it is, for `--help`.
      **options: further arguments of `ArgumentParser.add_argument`.
    """
    if default is False:
        return {"action": "store_true", "help": help}
    types: dict[type, Any] = {
        int: int,
        float: float,
        list: lambda text: text.split(",") if text else [],
    }
    options = {"type": types.get(type(default), str), **options}
    return {"default": default, "help": help, **options}


def required(help: str, **options: Any) -> dict[str, Any]:
    """A flag that has to be given."""
    return flag(None, help, required=True, **options)


def repeated(help: str) -> dict[str, Any]:
    """A flag that may be given several times."""
    return flag([], help, action="append", type=str)


def parse(description: str | None, **flags: dict[str, Any]) -> argparse.Namespace:
    """Reads the command line.

    Args:
      description: docstring of the program, whose first line `--help` shows.
      **flags: the flags by name; see `flag`.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    for name, options in flags.items():
        parser.add_argument(f"--{name}", **options)
    return parser.parse_args()
