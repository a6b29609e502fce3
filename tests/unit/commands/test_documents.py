"""Every code block of the README and the documentation is one that could run."""

import ast
import importlib.util
import re

import pytest
from absl import flags

from official.xlnet import cli
from tests.helpers.documents import DOCUMENTS, LANGUAGES, ROOT, Block, blocks, commands

# What commands of parsed blocks may call besides our own.
OTHERS = {"source", "uv", "cd", "docker", "curl", "jupytext", "kubectl", "git", "pip", "export"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_name_their_language_and_are_valid(path):
    text = path.read_text(encoding="utf-8")
    hidden = re.search(
        r"^    (xlnet|python|make|pip) .*", re.sub(r"```.*?```", "", text, flags=re.S), re.M
    )
    assert not hidden, f"{path.name}: not in a block with a language: {hidden}"
    for block in blocks(path):
        place = f"{path.name}, line {block.line}"
        assert block.language in LANGUAGES, place
        if block.language == "python" and "--8<--" not in block.code:
            ast.parse(block.code, place)
        if block.language == "sh":
            for words in commands(block):
                check(words, place, block.is_run)


def test_examples_in_the_help_are_commands_that_could_run():
    for verb, docstring in cli._verbs().items():
        (words,) = commands(Block("sh", docstring.partition(cli._EXAMPLE)[2], 1, False))
        check(words, verb, is_run=False)


def check(words, place, is_run):
    """A command exists and knows its flags."""
    while re.fullmatch(r"[A-Z_0-9]+=.*", words[0]):
        words = words[1:]
    scripts = [word for word in words if word.startswith("tools/launch/")]
    assert all((ROOT / script).exists() for script in scripts), place
    if scripts and scripts[0].endswith(".sh"):
        words = ["xlnet", *words[words.index(scripts[0]) + 1 :]]
    if words[0] == "xlnet":
        verb = " ".join(words[1:3] if words[1] == "inspect" else words[1:2])
        check_verb(verb, words[1 + len(verb.split()) :], place)
    elif words[:2] == ["python", "-m"] or words[0].endswith("bin/python"):
        if words[1] == "-m" and words[2] != "pytest":
            assert importlib.util.find_spec(words[2]), place
    elif words[0] == "python":
        assert (ROOT / words[1]).exists(), place
    elif words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert words[1] in targets, place
    else:
        assert words[0] in OTHERS, f"{place}: {words[0]}"
        assert not is_run or words[0] == "source", f"{place}: is marked as one that is run"


def check_verb(verb, arguments, place):
    if verb.startswith("-"):
        return
    assert verb in cli._verbs(), f"{place}: unknown verb {verb}"
    module = cli.load_verb(verb)
    known = set(module.FLAGS)
    for argument in arguments:
        if argument.startswith("--"):
            name = argument[2:].partition("=")[0]
            assert name in known or name.removeprefix("no") in known, f"{place}: {argument}"
    config = [a.partition("=")[2] for a in arguments if a.startswith("--config=")]
    assert all((ROOT / path).exists() for path in config if path.startswith("configs/")), place
    assert isinstance(module.FLAGS, flags.FlagValues)
