"""Fine-tuning tasks: a folder for each kind, and what they share.

* `<folder>/__init__.py`: the names of the task, its known data sets and the inputs of its exported
  model; `settings.py`: keys of the configuration that only it has, and its examples; `reader.py`:
  files of them; `task.py`: preprocessing, predictions, metrics and a plot, and the names of the
  head's variables in HF's and TF1's formats; `graph.py`: the head with its loss, and the service,
  what an exported model answers.
* `task`, `text_task`: base classes of tasks; `labels`: classes and scales.
* `batching`: padding, bucketing and batching of examples.
* `reports`: writes predictions, metrics and a plot of an evaluation.

Nothing else names a task: the tasks of the folders are entered here in the registries of
`official.xlnet.configs.registry`, and the files are imported when a name is first looked up.
"""

import importlib
import pkgutil

from official.xlnet.configs.registry import (
    DATASETS,
    FILE_READERS,
    FORMATS,
    HEADS,
    INPUTS,
    SERVICES,
    SETTINGS,
    TASKS,
)

# The registries of a task's parts, each with the file whose module registers it.
_PARTS = (
    (TASKS, "task"),
    (FILE_READERS, "reader"),
    (HEADS, "graph"),
    (SERVICES, "graph"),
)


def _enter(folder: str) -> None:
    """Enters the names of a folder, by default its own, for each of its files."""
    package = importlib.import_module(f"{__name__}.{folder}")
    names = getattr(package, "NAMES", (folder,))
    DATASETS.update(getattr(package, "DATASETS", {}))
    if hasattr(package, "INPUTS"):
        INPUTS[tuple(sorted(package.INPUTS))] = names[0]
    files = [file.name for file in pkgutil.iter_modules(package.__path__)]
    for registry, file in _PARTS:
        if file in files:
            registry.modules |= dict.fromkeys(names, f"tasks.{folder}.{file}")
    FORMATS.modules |= dict.fromkeys(getattr(package, "FORMATS", names), f"tasks.{folder}.task")
    SETTINGS.modules |= {f"task.name={name}": f"tasks.{folder}.settings" for name in names}


for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        _enter(_module.name)
