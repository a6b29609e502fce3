"""Modules that have moved since 1.0.0 are still imported by their former names."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types
from typing import Any

_PACKAGE = "official.xlnet."
# {former name below `official.xlnet`: name today}; of a package, the modules in it, too.
FORMER = {
    "checkpoints.convert.xlnet_format": "checkpoints.xlnet_format",
    "api.finetuning": "jobs.finetuning",
    "api.following": "jobs.following",
    "api.held_out": "jobs.held_out",
    "api.keras_model": "jobs.keras_model",
    "api.prediction": "jobs.prediction",
    "api.vocabulary": "jobs.vocabulary",
    "commands.embed": "jobs.file_embedding",
    "commands.identity": "jobs.identity",
    "commands.predict": "jobs.file_prediction",
    "analysis.context_length": "projects.any_order.context_length",
    "inference.cloze": "projects.any_order.candidates",
    "inference.decoding.stepwise": "projects.any_order.stepwise",
    "inference.pairs": "projects.any_order.pairs",
    "inference.words": "projects.any_order.words",
    "modeling.objectives.absorbing_diffusion": "projects.any_order.absorbing_diffusion",
    "training.context_losses": "projects.any_order.context_losses",
    "extensions.neighbors": "modeling.ops.neighbors",
    "extensions.several_runs": "projects.trials",
    "extensions": "projects.survey",
    "tasks.multitask": "projects.multitask",
    "files.mirror": "projects.buckets.mirror",
    "files.staging": "files.urls",
    "garden": "projects.garden",
    "analysis": "projects.pictures",
    "commands.inspect": "projects.pictures.inspect_verbs",
    "runtime.agreement": "projects.clusters.workers",
    "runtime.clusters": "projects.clusters.environment",
}


def name_today(name: str) -> str:
    """Returns the present name of a module; empty if it has not moved.

    Args:
      name: a dotted name.

    Example:
      >>> name_today("official.xlnet.extensions.bert")
      'official.xlnet.projects.survey.bert'
    """
    inside = name.removeprefix(_PACKAGE)
    for former, today in FORMER.items():
        if name != inside and f"{inside}.".startswith(f"{former}."):
            return _PACKAGE + today + inside.removeprefix(former)
    return ""


def register_former_modules() -> None:
    """Lets `import` find moved modules by their former names.

    This finder is asked first: a package that has moved also has its modules under its former
    name, where another finder would find them and run them for a second time.
    """
    sys.meta_path.insert(0, _Finder())


class _Finder:
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        today = name_today(name)
        if not today:
            return None
        has_package_moved = bool(name_today(name.rpartition(".")[0]))
        if not has_package_moved and importlib.machinery.PathFinder.find_spec(name, path):
            return None  # A new module has this name today.
        if importlib.util.find_spec(today) is None:
            return None
        loader: Any = _Alias(today)
        return importlib.machinery.ModuleSpec(name, loader)


class _Alias:
    """Loader that gives the module of another name."""

    def __init__(self, name: str):
        self._name = name

    def create_module(self, spec: Any) -> types.ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec  # The import system has replaced it.
