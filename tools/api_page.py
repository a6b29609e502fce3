"""Generates docs/library.md, the API reference, from docstrings.

    python -m tools.api_page

Each entry has the signature, the first paragraph of the docstring, and its sections (Args,
Attributes, Returns, Raises). Modules are parsed, not imported, except `official.xlnet`, whose names
come first. A test verifies that the page is up to date.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import pathlib
import re
import subprocess
import textwrap
from collections.abc import Iterator

from ruff.__main__ import find_ruff_bin

from official import xlnet

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs/library.md"

# {section: modules whose public names are listed}; a folder includes all of its modules.
SECTIONS = {
    "Functions for plain texts": (
        "official.xlnet.api.finetuning",
        "official.xlnet.api.prediction",
        "official.xlnet.api.plain_examples",
        "official.xlnet.api.language_model",
        "official.xlnet.api.pretraining",
        "official.xlnet.api.vocabulary",
        "official.xlnet.inference.embedding",
        "official.xlnet.checkpoints.any_format",
        "official.xlnet.checkpoints.convert",
    ),
    "Configuration": (
        "official.xlnet.configs.experiment",
        "official.xlnet.configs.model",
        "official.xlnet.configs.data",
        "official.xlnet.configs.objective",
        "official.xlnet.configs.training",
        "official.xlnet.configs.task",
        "official.xlnet.errors",
    ),
    "Model": (
        "official.xlnet.modeling.networks",
        "official.xlnet.modeling.layers",
        "official.xlnet.modeling.models.xlnet_pretrainer",
        "official.xlnet.modeling.models.xlnet_task_model",
        "official.xlnet.modeling.models.xlnet_classifier",
        "official.xlnet.modeling.models.trainable_model",
        "official.xlnet.checkpoints.model_directory",
    ),
    "Objectives": (
        "official.xlnet.modeling.objectives.base",
        "official.xlnet.modeling.objectives.permutation_lm",
        "official.xlnet.modeling.objectives.denoising",
        "official.xlnet.modeling.objectives.causal_lm",
        "official.xlnet.modeling.objectives.auxiliary",
        "official.xlnet.modeling.objectives.permutation_sampling",
    ),
    "Extensions": (
        "official.xlnet.configs.base",
        "official.xlnet.modeling.networks.encoder",
        "official.xlnet.modeling.depth.stacked",
        "official.xlnet.modeling.ops.initializers",
        "official.xlnet.extensions.bert.settings",
        "official.xlnet.extensions.universal.settings",
        "official.xlnet.extensions.next_sentence.settings",
        "official.xlnet.extensions.ernie.capitalization",
        "official.xlnet.extensions.ernie.token_document",
    ),
    "Tokenization and data": (
        "official.xlnet.tokenization.tokenizer",
        "official.xlnet.data.schema",
        "official.xlnet.data.pretraining_dataset",
        "data_prep.pipelines.prepare",
    ),
    "Training and evaluation": (
        "official.xlnet.training.pretraining",
        "official.xlnet.training.optimization",
        "official.xlnet.training.evaluation",
    ),
    "Fine-tuning tasks": (
        "official.xlnet.data.examples",
        "official.xlnet.data.reading",
        "official.xlnet.modeling.heads.base",
        "official.xlnet.tasks.task",
        "official.xlnet.tasks.batching",
        "official.xlnet.tasks.text_baselines",
        "official.xlnet.configs.finetuning_defaults",
        "official.xlnet.training.finetuning",
        "official.xlnet.training.several_runs.finetuning_search",
        "official.xlnet.inference.task_prediction",
    ),
    "Scoring and generation": (
        "official.xlnet.inference.scoring",
        "official.xlnet.inference.generation",
        "official.xlnet.inference.sampling",
    ),
    "Serving": (
        "official.xlnet.serving.export",
        "official.xlnet.serving.client.endpoint",
        "official.xlnet.serving.client.beam",
    ),
    "Model Garden": (
        "official.xlnet.garden.bert_style_encoder",
        "official.xlnet.garden.pretraining",
    ),
    "Looking inside": (
        "official.xlnet.analysis.record_windows",
        "official.xlnet.analysis.attention_maps",
        "official.xlnet.analysis.attention_patterns",
    ),
    "Command line": ("official.xlnet.cli",),
}
_INTRODUCTION = """\
<!-- Written by `python -m tools.api_page`; edit the docstrings instead. -->

# API

The names of `official.xlnet` (`from official import xlnet`) are imported lazily, so importing the
package is fast. The other names are imported from their modules.
[Concepts](concepts.md) explains the terms, [architecture](architecture.md) the folders.
"""
_KEPT_DECORATORS = {"classmethod", "staticmethod", "property", "dataclasses.dataclass"}
_CALLS = {"__init__", "__call__", "call"}  # Methods that can be documented by the class docstring.
_NAME = r"[\w*]+(?:, [\w*]+)*: "  # One or more argument names.

Definition = ast.FunctionDef | ast.ClassDef


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Returns the contents of the page."""
    parts = [_INTRODUCTION, "## official.xlnet\n"]
    for name in sorted(set(xlnet.__all__) - {"__version__"}, key=str.lower):
        module, node = find(f"{xlnet.__name__}.{xlnet._MODULE_OF[name]}", name)
        parts.append(entry(node, f"`xlnet.{name}`, from `{module}`"))
    for title, modules in SECTIONS.items():
        parts.append(f"## {title}\n")
        for module in itertools.chain.from_iterable(map(modules_in, modules)):
            nodes = [n for n in definitions(module) if n.name not in xlnet.__all__]
            if nodes:
                summary, _ = sections(ast.get_docstring(parse(module)) or "")
                parts.append(f"**`{module}`**: {summary}\n")
            parts += [entry(node, "") for node in nodes]
    return "\n".join(parts)


def modules_in(name: str) -> list[str]:
    """Returns the modules in a folder, or the module itself."""
    folder = ROOT.joinpath(*name.split("."))
    return [f"{name}.{path.stem}" for path in sorted(folder.glob("[!_]*.py"))] or [name]


def parse(module: str) -> ast.Module:
    """Parses a module of this repository."""
    path = ROOT.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def definitions(module: str) -> list[Definition]:
    """Returns the public functions and classes defined in a module, in source order."""
    return [
        node
        for node in parse(module).body
        if isinstance(node, Definition) and not node.name.startswith("_") and not is_overload(node)
    ]


def is_overload(node: Definition) -> bool:
    """Returns whether a definition only declares one signature of several."""
    return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)


def find(module: str, name: str) -> tuple[str, Definition]:
    """Finds a name that a module defines or imports; returns the defining module and the node."""
    for node in parse(module).body:
        if isinstance(node, Definition) and node.name == name and not is_overload(node):
            return module, node
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return find(str(node.module), name)
    raise ValueError(f"{module} neither defines nor imports {name}")


def entry(node: Definition, place: str) -> str:
    """Returns the entry of a function or class."""
    parts = [f"### {node.name}\n"]
    if place:
        parts.append(f"{place}.\n")
    # Signatures are not runnable code: the names in them are not imported.
    parts.append(f"<!-- test: parse -->\n```python\n{signature(node)}```\n")
    parts += described(node)
    for method in methods(node) if isinstance(node, ast.ClassDef) else ():
        if ast.get_docstring(method):
            parts.append(f"`{node.name}.{method.name}`:")
            parts += described(method)
    return "\n".join(parts)


def described(node: Definition) -> list[str]:
    """Returns the first paragraph of a docstring, and its sections as Markdown lists."""
    summary, lists = sections(ast.get_docstring(node) or "")
    parts = [f"{summary}\n"] if summary else []
    for title, items in lists:
        parts.append(f"{title}\n")
        parts += [f"- {item}" for item in items]
        parts.append("")
    return parts


def methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Returns the constructor, call and documented public methods of a class, in source order."""
    found = [part for part in node.body if isinstance(part, ast.FunctionDef)]
    return [
        method
        for method in found
        if method.name in _CALLS or (not method.name.startswith("_") and ast.get_docstring(method))
    ]


def signature(node: Definition) -> str:
    """Returns a definition without bodies and docstrings, formatted by `ruff format`."""
    stub = copy.deepcopy(node)
    stub.decorator_list = _kept(node)
    if isinstance(stub, ast.ClassDef):
        fields = [
            part
            for part in stub.body
            if isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_")
        ]
        kept = methods(stub)
        for method in kept:
            method.decorator_list = _kept(method)
            method.body = [ast.Expr(ast.Constant(...))]
        stub.body = [*fields, *kept] or [ast.Expr(ast.Constant(...))]
    else:
        stub.body = [ast.Expr(ast.Constant(...))]
    command = [
        find_ruff_bin(),
        "format",
        "--isolated",
        "--line-length=100",
        "--stdin-filename=stub.py",
        "-",
    ]
    return subprocess.run(
        command, input=ast.unparse(stub), capture_output=True, text=True, check=True
    ).stdout


def sections(docstring: str) -> tuple[str, list[tuple[str, list[str]]]]:
    """Splits a docstring into its first paragraph and its sections (titles and items).

    A section is a line followed by lines indented by two spaces. Examples are skipped.
    """
    summary, lists = "", []
    for number, paragraph in enumerate(re.split(r"\n\s*\n", inspect.cleandoc(docstring))):
        lines = paragraph.splitlines()
        starts = [
            at
            for at, line in enumerate(lines[:-1])
            if not line.startswith(" ") and re.match(r"  [^\s>]", lines[at + 1])
        ]
        if number == 0:
            summary = _prose(" ".join(lines))
        elif starts:
            title = " ".join(lines[: starts[0] + 1])
            lists.append((_prose(title), list(_items(lines[starts[0] + 1 :], rf"\n(?={_NAME})"))))
    return summary, lists


def _items(lines: list[str], separator: str) -> Iterator[str]:
    """Yields the items of a section as Markdown, with names as code and with nested lists."""
    for item in re.split(separator, textwrap.dedent("\n".join(lines))):
        first, *more = item.splitlines()
        is_list = first.endswith(":") and bool(more)
        words = first if is_list else " ".join(item.split())
        name = re.match(_NAME, words)
        rest = _prose(words[name.end() :] if name else words)
        nested = [f"\n    - {inner}" for inner in _items(more, r"\n(?! )")] if is_list else []
        yield (f"`{name[0][:-2]}`: {rest}" if name else rest) + "".join(nested)


def _prose(text: str) -> str:
    """Escapes HTML outside of code spans."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else p.replace("<", "&lt;") for p in parts)


def _kept(node: Definition) -> list[ast.expr]:
    """Decorators that are part of the public signature."""

    def name(decorator: ast.expr) -> str:
        return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)

    return [decorator for decorator in node.decorator_list if name(decorator) in _KEPT_DECORATORS]


if __name__ == "__main__":
    main()
