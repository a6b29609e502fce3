"""Fine-tuning tasks: a folder for each kind, and what they share.

* `<folder>/settings.py`: keys of the configuration that only it has; `examples.py`, `reader.py`:
  its examples, and files of them; `task.py`: preprocessing, predictions, metrics and a plot;
  `head.py`: the layer and its loss; `service.py`: what an exported model answers; `formats.py`: the
  head in HF's and TF1's formats.
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

_REGISTRIES = {
    "task": TASKS,
    "head": HEADS,
    "reader": FILE_READERS,
    "service": SERVICES,
    "formats": FORMATS,
}


def _enter(folder: str) -> None:
    """Enters the names of a folder, by default its own, for each of its files."""
    package = importlib.import_module(f"{__name__}.{folder}")
    names = getattr(package, "NAMES", (folder,))
    DATASETS.update(getattr(package, "DATASETS", {}))
    if hasattr(package, "INPUTS"):
        INPUTS[tuple(sorted(package.INPUTS))] = names[0]
    for file in pkgutil.iter_modules(package.__path__):
        where = f"tasks.{folder}.{file.name}"
        if file.name in _REGISTRIES:
            _REGISTRIES[file.name].modules |= dict.fromkeys(names, where)
        if file.name == "settings":
            SETTINGS.modules |= {f"task.name={name}": where for name in names}


for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        _enter(_module.name)
