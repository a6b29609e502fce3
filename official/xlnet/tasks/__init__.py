"""Fine-tuning tasks: a folder for each kind, and what they share.

* `<folder>/__init__.py`: the names of the task, its known data sets, the inputs of its exported
  model, keys of the configuration that only it has, and its examples; `reader.py`: files of them;
  `task.py`: preprocessing, predictions, metrics and a plot, and the names of the
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
    TASKS,
)

# The registries of a task's parts, each with the file whose module registers it.
_PARTS = (
    (TASKS, "task"),
    (FILE_READERS, "reader"),
    (HEADS, "graph"),
    (SERVICES, "graph"),
)


for _folder in [module.name for module in pkgutil.iter_modules(__path__) if module.ispkg]:
    _package = importlib.import_module(f"{__name__}.{_folder}")
    _names = getattr(_package, "NAMES", (_folder,))
    DATASETS.update(getattr(_package, "DATASETS", {}))
    if hasattr(_package, "INPUTS"):
        INPUTS[tuple(sorted(_package.INPUTS))] = _names[0]
    _files = [file.name for file in pkgutil.iter_modules(_package.__path__)]
    for _registry, _file in _PARTS:
        if _file in _files:
            _registry.modules |= dict.fromkeys(_names, f"tasks.{_folder}.{_file}")
    _formats = getattr(_package, "FORMATS", _names)
    FORMATS.modules |= dict.fromkeys(_formats, f"tasks.{_folder}.task")
