"""The names of `official.xlnet`: of the core and of projects, in a table and for type checkers."""

import ast
import importlib
import pathlib

import pytest

from official import xlnet
from official.xlnet.configs.registry import PUBLIC_NAMES


def test_type_checkers_read_the_table():
    tree = ast.parse(pathlib.Path(xlnet.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    read = {
        alias.name: node.module
        for node in imports
        if node.col_offset  # In `if TYPE_CHECKING`.
        for alias in node.names
    }
    assert read == xlnet._MODULE_OF


@pytest.mark.parametrize("name", PUBLIC_NAMES.modules)
def test_names_of_projects_are_names_of_the_package(name):
    assert name in dir(xlnet) and name not in xlnet._MODULE_OF
    module = importlib.import_module(f"official.xlnet.{PUBLIC_NAMES.modules[name]}")
    assert getattr(xlnet, name) is getattr(module, name) is PUBLIC_NAMES[name]


def test_other_names_are_errors():
    with pytest.raises(AttributeError, match="has no attribute 'pretrian'"):
        xlnet.pretrian  # noqa: B018
