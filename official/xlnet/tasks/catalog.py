"""Enters the tasks of the folders beside this file in the registries of their parts."""

import importlib
import pkgutil

from official.xlnet import tasks
from official.xlnet.configs.registry import (
    DATASETS,
    FILE_READERS,
    HEAD_FORMATS,
    HEADS,
    INPUTS,
    SERVICES,
    TASKS,
)

# The registries of a task's parts, each with the file whose module registers it.
_PARTS = (
    (TASKS, "task"),
    (FILE_READERS, "reader"),
    (HEADS, "graph"),
    (SERVICES, "service"),
)


def _enter() -> None:
    modules: list[dict[str, str]] = [{} for _ in _PARTS]
    of_tasks = modules[0]
    folders = [module.name for module in pkgutil.iter_modules(tasks.__path__) if module.ispkg]
    for folder in folders:
        package = importlib.import_module(f"{tasks.__name__}.{folder}")
        names = getattr(package, "NAMES", (folder,))
        DATASETS.update(getattr(package, "DATASETS", {}))
        if hasattr(package, "INPUTS"):
            INPUTS[",".join(sorted(package.INPUTS))] = names[0]
        files = [file.name for file in pkgutil.iter_modules(package.__path__)]
        for part_modules, (_, file) in zip(modules, _PARTS, strict=True):
            if file in files:
                part_modules.update(dict.fromkeys(names, f"tasks.{folder}.{file}"))
        for name in names:
            if name in files:  # A folder of several tasks may have a file for each.
                of_tasks[name] = f"tasks.{folder}.{name}"
        if "formats" in files:
            formats = getattr(package, "HEAD_FORMATS", names)
            HEAD_FORMATS.modules.update(dict.fromkeys(formats, f"tasks.{folder}.formats"))
    for (registry, _), part_modules in zip(_PARTS, modules, strict=True):
        # Tasks of the core are listed before tasks of projects.
        registry.modules = {**part_modules, **registry.modules}


_enter()
