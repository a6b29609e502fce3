"""Each flag of a verb is an option of the public function, in the reference, and in a test.

The rows are the flags of the verbs, which are parameters of functions and have their texts from
there (`tests/unit/commands/test_declarations.py`).
"""

import ast
import functools
import inspect
import pathlib
import re

import pytest

from official import xlnet
from official.xlnet.commands.declarations import declaration
from official.xlnet.configs.registry import VERBS
from tests.helpers.documents import ROOT
from tools import api_page

# Verbs that have a function for files, which calls the public one, or what that calls, and flags of
# that function alone.
OF_FILES = {
    "embed": {"input", "output", "layers", "products", "format"},
    "generate": {"text", "input", "output"},
    "predict": {
        *("input", "output", "batch_size", "shard", "products"),
        *("endpoint", "name", "signature", "task", "timeout", "retries"),
    },
    "score": {"text", "input", "output", "context", "given", "whole_given"},
    "inspect attention": {"output", "layers", "heads"},
}
OTHER_DEFAULT = {("score", "num_orders")}  # 8, and 1 in Python.
PUBLIC = {"inspect attention": "attention_maps", "vocab": "train_vocabulary"}


def has_public_function(verb):
    """Whether a function of `official.xlnet` does the same."""
    return verb in PUBLIC or not VERBS.modules[verb].startswith("projects.")


@pytest.mark.parametrize("verb", filter(has_public_function, VERBS.names()))
def test_a_flag_is_an_option_of_the_public_function(verb):
    flags, name = declaration(verb).parameters, PUBLIC.get(verb, verb)
    options = inspect.signature(getattr(xlnet, name)).parameters
    without = flags.keys() - options.keys()
    assert without == OF_FILES.get(verb, set()), (
        f"flags of `xlnet {verb}` that `official.xlnet.{name}` does not take: {sorted(without)}; "
        "give it these parameters, or, for flags about files, write them in OF_FILES here"
    )
    for option in flags.keys() & options.keys():
        default = options[option].default
        if (verb, option) not in OTHER_DEFAULT:
            assert default in (flags[option].default, inspect.Parameter.empty, None), (
                f"--{option}: expected the default of `official.xlnet.{name}`, {default!r}, got "
                f"{flags[option].default!r}"
            )
        else:
            assert default != flags[option].default, f"{option}: take it out of OTHER_DEFAULT"


def test_the_reference_has_every_flag():
    page = api_page.commands_page()
    is_current = api_page.COMMANDS.read_text(encoding="utf-8") == page
    assert is_current, f"{api_page.COMMANDS.relative_to(ROOT)}: run python -m tools.api_page"
    whole = api_page.commands_page(is_whole=True)  # That of the site.
    for verb in VERBS.names():
        flags = declaration(verb).flags
        assert f"\n## xlnet {verb}\n" in page
        explained = whole.partition(f"## xlnet {verb}\n")[2].partition("\n## ")[0]
        rows = re.findall(r"^- `--(?:\[no\])?(\w+).*`: \S", explained, re.MULTILINE)
        assert rows == [flag.name for flag in flags]


@functools.cache
def words_of_tests():
    """Words of each function of the tests; verbs and flags of each file, and flags of helpers."""
    paths, found = {*(ROOT / "tests").rglob("*.py")} - {pathlib.Path(__file__)}, []
    for path in paths:
        text = path.read_text()
        all_verbs = " ".join(VERBS.names())
        verbs = all_verbs if "helpers" in path.parts else text
        flags = re.findall(r"--(\w+)", text)
        found.append(
            {*flags, *re.findall(r"\w+", verbs)} & {*flags, *" ".join(VERBS.names()).split()}
        )
        for scope in ast.parse(text).body:
            texts = []
            for node in ast.walk(scope):
                fields = (getattr(node, name, "") for name in ("attr", "id", "value", "arg"))
                texts += [field for field in fields if isinstance(field, str)]
            found.append({*re.findall(r"\w+", " ".join(texts))})
    return found


@pytest.mark.parametrize("verb", VERBS.names())
def test_a_flag_is_in_a_test(verb):
    """In a function with the verb, or as `--flag` in its file or a helper."""
    scopes = [words for words in words_of_tests() if words.issuperset(verb.split())]
    for name in declaration(verb).parameters:
        assert any({name, f"no{name}"} & words for words in scopes), (
            f"--{name} is in no test: call `{verb}` with it in a test, as --{name} or {name}="
        )
