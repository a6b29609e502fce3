"""The code that a result depends on: modules that a training step and a reading of it execute.

These are found from a few roots by the imports at the top of modules: those of training, the
network and objective of a recipe, and what an experiment names as its `CODE`: modules, and as
`module:function` the functions of its own that train and read, with what they use of their module.
Those that format tables decide no number.
"""

from __future__ import annotations

import ast
import functools
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS, OBJECTIVES

ROOT = pathlib.Path(__file__).parents[2]
TRAINING = (
    "data_prep.records.records",
    "official.xlnet.data.pretraining_dataset",
    "official.xlnet.modeling.models.xlnet_pretrainer",
    "official.xlnet.training.optimization",
    "official.xlnet.training.schedules",
)
# Other packages decide what is shown, stored or refused, but no number.
_DECIDING = (
    "benchmarks.learning.span_likelihood",
    "data_prep.records.",
    "official.xlnet.data.",
    "official.xlnet.inference.",
    "official.xlnet.modeling.",
    "official.xlnet.projects.",
    "official.xlnet.training.optimization",
    "official.xlnet.training.schedules",
)
_CHECKS = (
    "official.xlnet.data.file_names",
    "official.xlnet.data.schema",
    "official.xlnet.inference.language_model",
    "official.xlnet.inference.score",
    "official.xlnet.modeling.models.checked_fit",
    "official.xlnet.modeling.models.checked_weights",
    "official.xlnet.modeling.ops.keras_files",
)


def roots_of(recipes: Sequence[str], code: Sequence[str]) -> tuple[str, ...]:
    """Returns names of modules: of training, of recipes, and of `code`.

    Args:
      recipes: paths of recipes.
      code: names of further modules.
    """
    roots = [*TRAINING, *code]
    for recipe in recipes:
        config = XLNetConfig.load(recipe)
        of_recipe = (
            NETWORKS.modules.get(config.model.network),
            OBJECTIVES.modules.get(config.objective.kind),
        )
        roots += [f"official.xlnet.{name}" for name in of_recipe if name]
    return tuple(sorted(set(roots)))


def paths_of(roots: Iterable[str], root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Returns the files of modules that decide numbers, and that modules import, sorted.

    Args:
      roots: names of modules.
      root: folder of the packages.
    """
    found: dict[str, pathlib.Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = _file_of(name, root)
        if path is None or name in found or name in _CHECKS or not name.startswith(_DECIDING):
            continue
        found[name] = path
        waiting += _imports_of(path)
    return sorted(found.values())


def part_of(entry: str, root: pathlib.Path = ROOT) -> str:
    """Returns a function and what it uses of its module, functions, classes and constants, as code.

    Args:
      entry: `module:function`.
      root: folder of the packages.
    """
    module, _, function = entry.partition(":")
    path = _file_of(module, root)
    assert path, module
    defined: dict[str, ast.stmt] = {}
    for node in _tree_of(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            defined[ast.unparse(target)] = node
    used: dict[str, ast.stmt] = {}
    waiting = [function]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in used:
            used[name] = defined[name]
            names = [node.id for node in ast.walk(used[name]) if isinstance(node, ast.Name)]
            waiting += names
    assert function in used, entry
    return "\n".join(ast.unparse(used[name]) for name in sorted(used))


def _file_of(name: str, root: pathlib.Path) -> pathlib.Path | None:
    folder = root.joinpath(*name.split("."))
    files = (folder.with_suffix(".py"), folder / "__init__.py")
    return next((path for path in files if path.exists()), None)


def _imports_of(path: pathlib.Path) -> Iterator[str]:
    """Names of modules that a module imports at its top, and of what could be modules."""
    for node in _tree_of(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def _tree_of(text: str) -> ast.Module:
    return ast.parse(text)
