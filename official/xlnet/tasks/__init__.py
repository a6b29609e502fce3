"""Fine-tuning tasks: a folder for each kind, and what they share.

* `<folder>/task.py`: preprocessing of examples, predictions, metrics and a plot; `head.py`: the
  layer and its loss; `reader.py`: files of examples; `service.py`: what an exported model answers.
* `task`, `text_task`: base classes of tasks; `labels`: classes and scales.
* `batching`: padding, bucketing and batching of examples.
* `reports`: writes predictions, metrics and a plot of an evaluation.

Nothing else names a task: the tasks of the folders are entered here in the registries of
`official.xlnet.configs.registry`, and the files are imported when a name is first looked up.
"""

import importlib
import pkgutil

from official.xlnet.configs.registry import FILE_READERS, HEADS, SERVICES, TASKS

_REGISTRIES = {"task": TASKS, "head": HEADS, "reader": FILE_READERS, "service": SERVICES}


def _enter(folder: str) -> None:
    """Enters the names of a folder, by default its own, for each of its files."""
    package = importlib.import_module(f"{__name__}.{folder}")
    for file in pkgutil.iter_modules(package.__path__):
        if file.name in _REGISTRIES:
            names = getattr(package, "NAMES", (folder,))
            where = f"tasks.{folder}.{file.name}"
            _REGISTRIES[file.name].modules |= dict.fromkeys(names, where)


for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        _enter(_module.name)
