"""Specifications of modules that a program loads in its own way."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import machinery


def spec_with_loader(
    name: str, path: Sequence[str] | None, loader: type[machinery.SourceFileLoader]
) -> machinery.ModuleSpec | None:
    """Returns the specification of a module with another loader.

    Args:
      name: full name of the module.
      path: `__path__` of its package; None for a module of no package.
      loader: class of the loader.

    Returns:
      The specification; None if the module is not installed, or not an ordinary source file.
    """
    spec = machinery.PathFinder.find_spec(name, path)
    if spec is None or type(spec.loader) is not machinery.SourceFileLoader:
        return None
    spec.loader = loader(spec.loader.name, spec.loader.path)
    return spec
