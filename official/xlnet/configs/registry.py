"""Registries: implementations by the name that a configuration key gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from official.xlnet.errors import ConfigError

T = TypeVar("T")


class Registry(dict[str, T]):
    """Implementations by name; what this package has and what others add are entries alike.

    Args:
      key: the configuration key whose values are the names, for error messages.

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
        """Returns a decorator that enters what it decorates under `name`.

        Raises:
          ConfigError: the name is taken; raised by the decorator.
        """

        def enter(implementation: T) -> T:
            if name in self:
                raise ConfigError(
                    f"{self.key}: expected a name that is free for {_place(implementation)}, got "
                    f"{name!r}, which is {_place(self[name])}"
                )
            self[name] = implementation
            return implementation

        return enter

    def __missing__(self, name: str) -> T:
        raise ConfigError(
            f"{self.key}: expected one of {', '.join(self)}, got {name!r}; a name that an "
            "extension registers is known once its module is imported (--import=MODULE)"
        )


def _place(implementation: object) -> str:
    return f"{implementation.__module__}.{getattr(implementation, '__qualname__', '')}"
