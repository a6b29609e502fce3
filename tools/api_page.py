"""Lists the public names in docs/library.md, and makes the site's pages about them.

    python -m tools.api_page

The list has the first line of each docstring. A test verifies that it is up to date. MkDocs calls
the functions `on_…` (`hooks` in mkdocs.yml): the site has a page for each section, which
mkdocstrings makes of signatures and docstrings, and the names in the list link to them. Modules
are parsed, not imported, except `official.xlnet`, whose names come first.
"""

from __future__ import annotations

import ast
import itertools
import pathlib
import re
from typing import Any

from official import xlnet

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs/library.md"

# {section: modules whose public names are listed}; a folder includes all of its modules.
SECTIONS = {
    "Functions for plain texts": (
        "official.xlnet.api.finetuning",
        "official.xlnet.api.prediction",
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
        "official.xlnet.tasks.settings",
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
        "official.xlnet.modeling.depth.stacked",
        "official.xlnet.modeling.ops.initializers",
        "official.xlnet.extensions.settings",
        "official.xlnet.extensions.auxiliary",
        "official.xlnet.extensions.contiguous",
        "official.xlnet.extensions.language_model_loss",
        "official.xlnet.extensions.stochastic_answer",
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
        "official.xlnet.tasks.classification.__init__",
        "official.xlnet.tasks.multiple_choice.__init__",
        "official.xlnet.tasks.multitask.__init__",
        "official.xlnet.tasks.question_answering.__init__",
        "official.xlnet.tasks.ranking.__init__",
        "official.xlnet.tasks.token_classification.__init__",
        "official.xlnet.tasks.task",
        "official.xlnet.tasks.batching",
        "official.xlnet.extensions.text_baselines",
        "official.xlnet.configs.finetuning_defaults",
        "official.xlnet.training.finetuning",
        "official.xlnet.extensions.several_runs.search",
        "official.xlnet.inference.task_prediction",
    ),
    "Scoring and generation": (
        "official.xlnet.inference.scoring",
        "official.xlnet.inference.words",
        "official.xlnet.inference.pairs",
        "official.xlnet.inference.cloze",
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
        "official.xlnet.analysis.masks",
        "official.xlnet.analysis.attention_patterns",
    ),
    "Command line": ("official.xlnet.cli",),
}
_INTRODUCTION = """\
<!-- Written by `python -m tools.api_page`; edit the docstrings instead. -->

# API

The names of `official.xlnet` (`from official import xlnet`) are imported lazily, so importing the
package is fast. The other names are imported from their modules. Their docstrings say more; in the
site that `make docs` builds, every name leads to them.
[Concepts](concepts.md) explains the terms, [architecture](architecture.md) the folders.
"""

Definition = ast.FunctionDef | ast.ClassDef


def main() -> None:
    """Writes the list."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """Returns the contents of the list."""
    parts = [_INTRODUCTION]
    for title, found in entries().items():
        parts.append(f"## {title}\n\n| name | | module |\n|---|---|---|")
        parts += [f"| `{node.name}` | {first_line(node)} | `{module}` |" for module, node in found]
        parts[-1] += "\n"
    return "\n".join(parts)


def entries() -> dict[str, list[tuple[str, Definition]]]:
    """{section: its names, each as its module and its definition}."""
    found: dict[str, list[tuple[str, Definition]]] = {"official.xlnet": []}
    for name in sorted(set(xlnet.__all__) - {"__version__"}, key=str.lower):
        found["official.xlnet"].append(find(xlnet._place_of(name), name))
    for title, modules in SECTIONS.items():
        found[title] = [
            (module, node)
            for module in itertools.chain.from_iterable(map(modules_in, modules))
            for node in definitions(module)
            if node.name not in xlnet.__all__
        ]
    return found


def on_config(config: Any) -> Any:
    """Shows the version at the end of each page; MkDocs calls it."""
    config.copyright = f"XLNet for TensorFlow {xlnet.__version__}, Apache License 2.0"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each section to the site, without what a guide shows; MkDocs calls it."""
    from mkdocs.structure.files import File, InclusionLevel  # Where the site is built only.

    guides = "".join(path.read_text(encoding="utf-8") for path in PAGE.parent.glob("*.md"))
    shown = re.findall(r"^::: (\S+)", guides, re.MULTILINE)
    for title, found in entries().items():
        named = [f"::: {module}.{node.name}" for module, node in found if module not in shown]
        name, text = re.sub("[^a-z]", "_", title.lower()), "\n\n".join([f"# {title}", *named])
        level = InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, f"api_{name}.md", content=text, inclusion=level))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Makes links of the names in the list; MkDocs calls it."""
    if page.file.src_uri == PAGE.name:
        row = r"^\| `(\w+)` (.*\| `([\w.]+)` \|)$"
        return re.sub(row, r"| [`\1`][\3.\1] \2", markdown, flags=re.MULTILINE)
    return markdown


def modules_in(name: str) -> list[str]:
    """Returns the modules in a folder, or the module itself; `….__init__` is a folder's own."""
    if name.endswith(".__init__"):
        return [name.removesuffix(".__init__")]
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


def first_line(node: Definition) -> str:
    """Returns the first line of a docstring as the cell of a table."""
    text = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|")


if __name__ == "__main__":
    main()
