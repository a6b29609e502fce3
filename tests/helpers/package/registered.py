"""What tests register, and how it is removed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from official.xlnet.configs import registry

TABLES = [table for table in vars(registry).values() if isinstance(table, registry.Registry)]


@contextlib.contextmanager
def nothing_is_kept() -> Iterator[None]:
    """Afterwards, no registry has a new name but those of modules of this package."""
    before = [set(table) for table in TABLES]
    try:
        yield
    finally:
        for table, names in zip(TABLES, before, strict=True):
            for name in set(table) - names:
                if not _is_of_a_module_of_ours(table[name]):
                    del table[name]


def _is_of_a_module_of_ours(value: Any) -> bool:
    """False for a class of another module, and for one of a docstring, which no module has."""
    name = getattr(value, "__qualname__", None)
    if name is None:  # A table entry without code.
        return True
    is_ours = value.__module__.startswith(("official.", "data_prep."))
    return is_ours and hasattr(sys.modules.get(value.__module__), name.partition(".")[0])
