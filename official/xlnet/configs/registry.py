"""Registries of implementations that are selected by a configuration key.

A name is registered when its module is imported. A module of `official.xlnet.extensions` is
imported when its name is first looked up; one of another package by its user (`--import=MODULE`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from official.xlnet.errors import ConfigError

T = TypeVar("T")

_EXTENSIONS = "official.xlnet.extensions"


class Registry(dict[str, T]):
    """Dictionary of implementations by name, of this package and of extensions.

    Args:
      key: the configuration key whose values are the names; used in error messages.
      *own: names of the core, known before the modules that register them are imported.

    Example:
      >>> objectives = Registry("objective.kind")
      >>> @objectives.register("causal")
      ... def causal_objective(config): ...
      >>> objectives["casual"]
      ConfigError: objective.kind: expected one of causal, got 'casual'; …
    """

    def __init__(self, key: str, *own: str):
        super().__init__()
        self.key, self.own = key, own

    def register(self, name: str) -> Callable[[Any], Any]:
        """Returns a decorator that registers a function or class.

        Args:
          name: the name to register it under.

        Raises:
          ConfigError: the name is already registered; raised by the decorator.
        """

        def add(implementation: T) -> T:
            if name in self._modules() and not implementation.__module__.startswith(_EXTENSIONS):
                self[name]  # Registers that of this package first.
            if name in self:
                raise ConfigError(
                    f"{self.key}: expected an unused name for {_place(implementation)}, got "
                    f"{name!r}, which is already registered for {_place(self[name])}"
                )
            self[name] = implementation
            return implementation

        return add

    def require(self, name: str) -> None:
        """Raises `ConfigError` unless a name is known; imports no implementation."""
        names = dict.fromkeys([*self.own, *self, *self._modules()])
        if name not in names:
            raise ConfigError(
                f"{self.key}: expected one of {', '.join(names)}, got {name!r}; names registered "
                "by an extension require importing its module (--import=MODULE)"
            )

    def __missing__(self, name: str) -> T:
        self.require(name)
        import_extension(self._modules()[name])
        return self[name]

    def _modules(self) -> Mapping[str, str]:
        """{name: module} of the extensions that come with this package."""
        return extension_table("MODULES").get(self.key, {})


def extension_table(name: str) -> Any:
    """Returns a table of `official.xlnet.extensions`; {} if the package is not installed."""
    try:
        return getattr(importlib.import_module(_EXTENSIONS), name)
    except ModuleNotFoundError:
        return {}


def import_extension(module: str) -> None:
    """Imports a module of `official.xlnet.extensions`, which registers what it has."""
    importlib.import_module(f"{_EXTENSIONS}.{module}")


def _place(implementation: object) -> str:
    """Qualified name of a function or class."""
    return f"{implementation.__module__}.{getattr(implementation, '__qualname__', '')}"


NETWORKS: Registry[Any] = Registry("model.network", "xlnet")
DEPTHS: Registry[Any] = Registry("model.depth", "stacked")
ATTENTION_INITS: Registry[Any] = Registry("model.attention_init", "normal")
OBJECTIVES: Registry[Any] = Registry("objective.kind", "permutation", "denoising", "causal")
AUXILIARY: Registry[Any] = Registry("objective.auxiliary")
