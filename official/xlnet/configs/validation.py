"""Validation helpers for configuration values; errors name the key."""

from __future__ import annotations

from typing import Any

from official.xlnet.errors import ConfigError


def require(condition: bool, key: str, expected: str, got: Any) -> None:
    """Raises `ConfigError` unless `condition` holds.

    Args:
      condition: the condition to check.
      key: the configuration key, e.g. `model.num_heads`.
      expected: description of the allowed values.
      got: the actual value.

    Raises:
      ConfigError: `condition` is false.

    Example:
      >>> require(False, "model.d_model", "an even number", 5)
      Traceback (most recent call last):
      official.xlnet.errors.ConfigError: model.d_model: expected an even number, got 5
    """
    if not condition:
        raise ConfigError(f"{key}: expected {expected}, got {got!r}")


def require_one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises `ConfigError` unless `value` is one of `allowed`."""
    require(value in allowed, key, f"one of {', '.join(allowed)}", value)
