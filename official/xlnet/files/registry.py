"""Tables of implementations that are selected by name, and imported when they are first used.

A name is registered when its module is imported. Modules of this package are imported when their
name is first looked up, modules of other packages by whoever uses them (`--import=MODULE`).
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from official.xlnet.errors import ConfigError, did_you_mean, require_config

T = TypeVar("T")


class Registry(dict[str, T]):
    """Dictionary of implementations by name, of this package and of others.

    Args:
      key: what the names are values of, a configuration key for example; for error messages.
      catalogs: {beginning of names: the module that enters such names into `modules`}; it is
        imported when such a name is unknown, or when all names are asked for.
      **modules: the modules that register a name: below `official.xlnet`, or of `data_prep`.

    Attributes:
      modules: {name: the module that registers it}.

    Example:
      >>> objectives = Registry("objective.kind")
      >>> @objectives.register("causal")
      ... def causal_objective(config): ...
      >>> objectives["casual"]
      ConfigError: objective.kind: expected one of causal, got 'casual'; …
    """

    def __init__(self, key: str, catalogs: Mapping[str, str] | None = None, /, **modules: str):
        super().__init__()
        self.key, self.modules = key, modules
        self._catalogs = dict(catalogs or {})

    def register(self, name: str) -> Callable[[Any], Any]:
        """Returns a decorator that registers a function or class.

        Args:
          name: the name to register it under.

        Raises:
          ConfigError: the name is already registered for another one; raised by the decorator. A
            cell that is run again, or a module that is reloaded, replaces its own.
        """

        def add(implementation: T) -> T:
            if not implementation.__module__.endswith(self.modules.get(name, "")):
                self.load(name)  # The module of this package comes first.
            if name in self and _place(self[name]) != _place(implementation):
                raise ConfigError(
                    f"{self.key}: expected an unused name for {_place(implementation)}, got "
                    f"{name!r}, which is already registered for {_place(self[name])}"
                )
            self[name] = implementation
            return implementation

        return add

    def names(self) -> list[str]:
        """Returns the names that are known, whether or not their module is imported."""
        for start in list(self._catalogs):
            self._import_catalog(start)
        return list(dict.fromkeys([*self.modules, *self]))

    def check(self, name: str, where: str = "") -> None:
        """Rule of a key, see `files.schema`: raises `ConfigError` unless a name is known."""
        if self.is_known(name):
            return
        require_config(
            name in self.names(),
            where or self.key,
            f"one of {', '.join(self.names())}",
            f"{name!r}; names registered by an extension require importing its module "
            f"(--import=MODULE){did_you_mean(name, self.names())}",
        )

    def is_known(self, name: str) -> bool:
        """Whether a name is registered, or a module of this package registers it."""
        if not self.is_listed(name):
            for start in [start for start in self._catalogs if name.startswith(start)]:
                self._import_catalog(start)
        return self.is_listed(name)

    def is_listed(self, name: str) -> bool:
        """The same, without importing a catalog."""
        return name in self or name in self.modules

    def load(self, name: str) -> None:
        """Imports the module of this package that registers a name, if there is one."""
        if self.is_known(name) and name in self.modules:
            importlib.import_module(full_name(self.modules[name]))

    def find(self, name: str, default: Any = None) -> Any:
        """Returns the implementation of a name, or a default for an unknown name."""
        return self[name] if self.is_known(name) else default

    def _import_catalog(self, start: str) -> None:
        importlib.import_module(f"official.xlnet.{self._catalogs.pop(start)}")

    def __missing__(self, name: str) -> T:
        self.check(name)
        self.load(name)
        return dict(self)[name]


# The verb that does what an option of another verb did, by "verb.option"; see `former_options`.
FORMER_OPTIONS = Registry[Any]("former option")


@dataclasses.dataclass(frozen=True, eq=False)
class NameIn:
    """Rule: a name in a registry, see `files.schema`.

    Attributes:
      registry: the registry.
    """

    registry: Registry[Any]

    @property
    def words(self) -> tuple[str, ...]:
        """The names that are known."""
        return tuple(self.registry.names())

    def check(self, value: str, where: str) -> None:
        """Raises `ConfigError` unless the name is known."""
        self.registry.check(value, where)


def full_name(module: str) -> str:
    """Returns the name to import of a module in `Registry.modules`.

    Example:
      >>> full_name("training.schedules"), full_name("data_prep.corpus.json_lines")
      ('official.xlnet.training.schedules', 'data_prep.corpus.json_lines')
    """
    return module if module.startswith("data_prep.") else f"official.xlnet.{module}"


def _place(implementation: object) -> str:
    """Qualified name of a function or class."""
    return f"{implementation.__module__}.{getattr(implementation, '__qualname__', '')}"
