"""Registries: names, and errors that say what else there is."""

import pytest

from official.xlnet.configs.registry import Registry
from official.xlnet.errors import ConfigError


def test_names_of_a_registry():
    registry = Registry("section.key")
    assert registry.register("first")(registry.register("second")(len)) is len
    assert registry["first"] is registry["second"] is len and "no" not in registry
    with pytest.raises(ConfigError, match=r"section\.key: expected one of second, first, got 'no'"):
        registry["no"]
    taken = r"unused name for builtins\.print, got 'first'.*builtins\.len"
    with pytest.raises(ConfigError, match=taken):
        registry.register("first")(print)
    assert registry["first"] is len


def test_a_cell_that_is_run_again_replaces_its_own():
    registry = Registry("section.key")

    def create(answer):
        def mine():
            return answer

        return mine

    for answer in (1, 2):
        registry.register("mine")(create(answer))
        assert registry["mine"]() == answer
