"""Every code block of the README and the documentation is one that could run."""

import ast
import importlib.util
import itertools
import re

import pytest

from official.xlnet.commands.declarations import COMMON, declaration
from official.xlnet.configs.experiment import recipe_path
from official.xlnet.configs.registry import VERBS
from tests.helpers.documents import DOCUMENTS, LANGUAGES, ROOT, Block, blocks, commands

# What commands of parsed blocks may call besides our own.
OTHERS = {
    "cat",
    "source",
    "uv",
    "cd",
    "docker",
    "curl",
    "jupytext",
    "kubectl",
    "git",
    "pip",
    "export",
    "tensorboard",
}
# Also those of projects that are deleted, which pages of the core may show.
LISTED_VERBS = re.findall(r"^## xlnet (.+)$", (ROOT / "docs/commands.md").read_text("utf-8"), re.M)
TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_name_their_language_and_are_valid(path):
    outside = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    hidden = re.search(r"^    (xlnet|python|make|pip) .*", outside, re.M)
    assert not hidden, f"{path.name}: not in a block with a language: {hidden}"
    for block in blocks(path):
        place = f"{path.name}, line {block.line}"
        assert block.language in LANGUAGES, place
        if block.language == "python" and "--8<--" not in block.code:
            ast.parse(block.code, place)
        if block.language == "sh":
            check(block, place)


# Pages that begin otherwise: lists to look things up in, and pages of measurements.
LISTS = {"index", "commands", "library", "architecture", "differences", "moving"}
MEASURED = {"ablation", "experiments", "performance", "time_to_quality"}
PAGES = [path for path in DOCUMENTS if path.parent == ROOT / "docs"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_opens_with_its_readers_and_a_command_with_its_output(path):
    title, _, text = path.read_text(encoding="utf-8").partition("\n\n")
    if path.stem not in ("index", "commands", "library"):
        assert title.startswith("# ") and text.startswith("For "), "whom the page is for"
    if path.stem in LISTS | MEASURED:
        return
    opening = blocks(path)[:3]
    followed = [
        command.language in ("sh", "python") and output.language == "text"
        for command, output in itertools.pairwise(opening)
    ]
    assert any(followed) or opening[0].code.startswith("$ "), "a command, and its output below"


def test_examples_in_the_help_are_commands_that_could_run():
    for verb in VERBS.names():
        check(Block("sh", declaration(verb).example, 1, False), verb)


def check(block, place):
    """Each command exists and knows its flags."""
    for words in commands(block):
        while re.fullmatch(r"[A-Z_0-9]+=.*", words[0]):
            words = words[1:]
        scripts = [word for word in words if word.startswith("tools/launch/")]
        if scripts and scripts[0].endswith(".sh"):
            words = ["xlnet", *words[words.index(scripts[0]) + 1 :]]
        files, (first, second, *_) = scripts, [*words, ""]
        if first == "xlnet" and not second.startswith("-"):
            verb = " ".join(words[1:3] if second == "inspect" else words[1:2])
            if verb not in VERBS.names() and any(x.startswith("--import=") for x in words):
                continue  # Of an extension.
            if verb not in VERBS.names() and verb in LISTED_VERBS:
                continue
            assert verb in VERBS.names(), f"{place}: unknown verb {verb}"
            given = [word[2:].partition("=") for word in words if word.startswith("--")]
            known = {*declaration(verb).parameters, *(x.name for x in COMMON)}
            unknown = {name for name, *_ in given if name not in known}
            assert {name.removeprefix("no") for name in unknown} <= known, place
            configs = [path for name, _, path in given if name == "config"]
            files = [*files, *(path for path in configs if path.startswith("configs/"))]
        elif second == "-m":
            assert importlib.util.find_spec(words[2]), place
        elif second == "-c":
            ast.parse(words[2], place)
        elif first == "python":
            files = [*files, second]
        elif first == "make":
            assert second in TARGETS, place
        elif first != "xlnet" and not first.endswith("bin/python"):
            assert first in OTHERS and (first == "source" or not block.is_run), f"{place}: {first}"
        # Recipes are found by their names, in the folder of their project.
        assert all((ROOT / recipe_path(path)).exists() for path in files), place
