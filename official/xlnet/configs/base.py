"""The base class of the configuration: `hyperparams.Config` of tf-models-official.

Its modules import TensorFlow, for functions that read and write files, which nothing here calls.
So while they are imported, stand-ins take the place of TensorFlow and Keras; a stand-in imports
what it stands for when one of its attributes is first used. A configuration then costs 0.1 seconds
and 40 MB where TensorFlow costs 3 seconds and 600 MB.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any


class _StandIn(types.ModuleType):
    """A module that is imported when one of its attributes is used."""

    def __getattr__(self, attribute: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)


@contextlib.contextmanager
def _deferred(*names: str) -> Iterator[None]:
    """Inside the block, `import name` gives a stand-in where the module is not loaded yet."""
    stand_ins = {name: _StandIn(name) for name in names if name not in sys.modules}
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


with _deferred("tensorflow", "tf_keras"):
    from official.modeling import hyperparams

Config = hyperparams.Config
