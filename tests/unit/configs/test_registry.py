"""Registries: names, and errors that say what else there is."""

import pytest

from official.xlnet.configs.registry import Registry
from official.xlnet.errors import ConfigError


def test_a_registry_returns_what_was_registered():
    registry = Registry("section.key")

    @registry.register("one")
    @registry.register("two")
    def function():
        return 3

    assert function() == 3  # Decorating changes nothing.
    assert registry["one"] is registry["two"] is function
    assert "three" not in registry


def test_a_name_that_is_not_there():
    registry = Registry("section.key")
    registry.register("first")(print)
    registry.register("second")(len)
    with pytest.raises(ConfigError, match=r"section\.key: expected one of first, second, got 'no'"):
        registry["no"]
    assert "no" not in registry


def test_a_name_that_is_taken_stays_what_it_was():
    registry = Registry("section.key")
    registry.register("name")(len)
    with pytest.raises(
        ConfigError, match=r"unused name for builtins\.print, got 'name'.*builtins\.len"
    ):
        registry.register("name")(print)
    assert registry["name"] is len
