"""Registry of implementations that are selected by a configuration key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from official.xlnet.errors import ConfigError

T = TypeVar("T")


class Registry(dict[str, T]):
    """Dictionary of implementations by name, of this package and of extensions.

    Args:
      key: the configuration key whose values are the names; used in error messages.

    Example:
      >>> objectives = Registry("objective.kind")
      >>> @objectives.register("causal")
      ... def causal_objective(config): ...
      >>> objectives["casual"]
      ConfigError: objective.kind: expected one of causal, got 'casual'; …
    """

    def __init__(self, key: str):
        super().__init__()
        self.key = key

    def register(self, name: str) -> Callable[[Any], Any]:
        """Returns a decorator that registers a function or class.

        Args:
          name: the name to register it under.

        Raises:
          ConfigError: the name is already registered; raised by the decorator.
        """

        def add(implementation: T) -> T:
            if name in self:
                raise ConfigError(
                    f"{self.key}: expected an unused name for {_place(implementation)}, got "
                    f"{name!r}, which is already registered for {_place(self[name])}"
                )
            self[name] = implementation
            return implementation

        return add

    def __missing__(self, name: str) -> T:
        raise ConfigError(
            f"{self.key}: expected one of {', '.join(self)}, got {name!r}; names registered by "
            "an extension require importing its module (--import=MODULE)"
        )


def _place(implementation: object) -> str:
    """Qualified name of a function or class."""
    return f"{implementation.__module__}.{getattr(implementation, '__qualname__', '')}"
