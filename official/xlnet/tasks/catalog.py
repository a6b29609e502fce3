"""Enters the tasks of the folders beside this file in the registries of their parts."""

import importlib
import pkgutil

from official.xlnet import tasks
from official.xlnet.configs.registry import (
    DATASETS,
    FILE_READERS,
    FORMATS,
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
    (SERVICES, "graph"),
)


for _folder in [module.name for module in pkgutil.iter_modules(tasks.__path__) if module.ispkg]:
    _package = importlib.import_module(f"{tasks.__name__}.{_folder}")
    _names = getattr(_package, "NAMES", (_folder,))
    DATASETS.update(getattr(_package, "DATASETS", {}))
    if hasattr(_package, "INPUTS"):
        INPUTS[",".join(sorted(_package.INPUTS))] = _names[0]
    _files = [file.name for file in pkgutil.iter_modules(_package.__path__)]
    for _registry, _file in _PARTS:
        if _file in _files:
            _registry.modules |= dict.fromkeys(_names, f"tasks.{_folder}.{_file}")
    _formats = getattr(_package, "FORMATS", _names)
    FORMATS.modules |= dict.fromkeys(_formats, f"tasks.{_folder}.task")
