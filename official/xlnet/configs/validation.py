"""Checks of configuration values; each raises a `ConfigError` that names the key."""

from __future__ import annotations

from typing import Any

from official.xlnet.errors import ConfigError


def require(condition: bool, key: str, expected: str, got: Any) -> None:
    """Raises `ConfigError` unless `condition` holds.

    Args:
      condition: what has to be true.
      key: the configuration key, e.g. `model.num_heads`.
      expected: the values that are allowed, in words.
      got: the value that was found.
    """
    if not condition:
        raise ConfigError(f"{key}: expected {expected}, got {got!r}")


def require_one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises `ConfigError` unless `value` is one of `allowed`."""
    require(value in allowed, key, f"one of {', '.join(allowed)}", value)
