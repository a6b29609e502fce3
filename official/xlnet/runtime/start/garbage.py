"""Python's garbage collector, paused while TensorFlow is imported.

The import creates a million objects that live as long as the process. The collector goes through
all of them several times to find out, a fifth of the time until a command begins.
"""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Sequence
from importlib import machinery

from official.xlnet.runtime.start.module_specs import spec_with_loader

_PACKAGE = "tensorflow"  # Imports Keras, too.


def pause_for_tensorflow() -> None:
    """Pauses garbage collection during the import of TensorFlow, and exempts what it creates.

    Objects of the import are not examined by later collections either. Meant for programs: in a
    process of somebody else, it would exempt their objects, too.
    """
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


class _Finder:
    """Finds TensorFlow; leaves every other module to the finders after it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if name != _PACKAGE:
            return None
        return spec_with_loader(name, path, _PausingLoader)


class _PausingLoader(machinery.SourceFileLoader):
    """Loader that executes its module without garbage collection."""

    def exec_module(self, module: types.ModuleType) -> None:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            super().exec_module(module)
            gc.freeze()
        finally:
            if was_enabled:
                gc.enable()
