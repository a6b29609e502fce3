"""Patterns of files: `*.ENDING` of a file's name, or the `FIRST BYTES*` of its content.

Formats are registered under such patterns, so that a file is recognized before the module of its
format is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from official.xlnet.files.registry import Registry, full_name

_BYTES = "latin-1"  # Every byte is a character.


def pattern_of_ending(ending: str) -> str:
    """Returns the pattern of files with an ending, e.g. `*.csv` of `.csv`."""
    return f"*{ending}"


def pattern_of_start(mark: bytes) -> str:
    """Returns the pattern of files that begin with some bytes, e.g. `>*` of `b">"`."""
    return f"{mark.decode(_BYTES)}*"


def matching_starts(registry: Registry[Any], start: bytes) -> Iterator[Any]:
    """Yields what is registered for the first bytes of a file.

    Args:
      registry: implementations by pattern.
      start: the first bytes of the file.
    """
    for pattern in registry.names():
        if pattern.endswith("*") and start.startswith(pattern[:-1].encode(_BYTES)):
            yield registry[pattern]


def register_patterns(
    registry: Registry[Any], endings: Sequence[str], mark: bytes, implementation: Any
) -> None:
    """Registers a format under its patterns, except those that another format has.

    Args:
      registry: the registry.
      endings: endings of file names, in lower case, with the dot.
      mark: first bytes; empty: none.
      implementation: the format.
    """
    patterns = [pattern_of_ending(ending) for ending in endings]
    if mark:
        patterns.append(pattern_of_start(mark))
    for pattern in patterns:
        owner = implementation.__module__
        if pattern in registry.modules:
            owner = full_name(registry.modules[pattern])
        elif pattern in registry:
            owner = registry[pattern].__module__
        if owner == implementation.__module__:
            registry.register(pattern)(implementation)
