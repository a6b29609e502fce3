"""Modules of Keras and TensorFlow that need large libraries, imported when they are first used.

If scikit-learn, Matplotlib, pandas and Google's API client are installed, as they are beside this
package, Keras and TensorFlow import them at their start: for wrappers, plots, tables and virtual
machines, which few commands use. They would be half of the time until a command begins.

`install` makes the modules in `LAZY_MODULES` wait for the first use of an attribute. Everything
else, such as `import sklearn` in any other module, is an ordinary import. The same is possible with
`importlib.util.LazyLoader`, whose modules, however, are also executed when they are imported again,
and are not safe with threads before Python 3.12.3.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterable, Sequence
from importlib import machinery
from typing import Any

from official.xlnet.runtime.start.module_specs import spec_with_loader

LAZY_MODULES = frozenset(
    {
        # Import scikit-learn.
        "keras.wrappers",
        "keras._tf_keras.keras.wrappers",
        # Import Matplotlib and OpenCV.
        "keras.visualization",
        "keras._tf_keras.keras.visualization",
        "keras.src.visualization",
        # Import pandas; used by `fit`.
        "keras.src.trainers.data_adapters.array_slicing",
        # Import SciPy.
        "tensorflow.python.keras.engine.training_arrays_v1",
        "tensorflow.python.keras.engine.training_v1",
        "tf_keras.api._v2.keras.preprocessing.image",
        "tf_keras.preprocessing.image",
        "tf_keras.src.engine.training_arrays_v1",
        "tf_keras.src.engine.training_v1",
        "tf_keras.src.preprocessing.image",
        # Libraries of which nothing is used before a function needs them.
        "IPython",
        "googleapiclient.discovery",
        "h5py",
        "httplib2.auth",  # Imports pyparsing.
        "pandas",
        "requests",
    }
)

# Names that introspection looks for in every module; the modules above do not have them.
_NOT_A_USE = ("__warningregistry__", "__wrapped__")


def install() -> None:
    """Makes `LAZY_MODULES` lazy in this process; call it before TensorFlow is imported.

    Modules that are already imported do not change. Meant for programs, whose imports are known:
    in a process of somebody else, it would change how other code is imported.
    """
    if _LazyFinder not in sys.meta_path:
        sys.meta_path.insert(0, _LazyFinder)


class _LazyFinder:
    """Finds `LAZY_MODULES`; leaves every other module to the finders after it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> machinery.ModuleSpec | None:
        if name not in LAZY_MODULES:
            return None
        if name in sys.modules:  # `importlib.reload`.
            return None
        return spec_with_loader(name, path, _LazyLoader)


class _LazyLoader(machinery.SourceFileLoader):
    """Loader that executes its module when `load` is first called."""

    def exec_module(self, module: types.ModuleType) -> None:
        """Returns without executing the module."""
        self._lock = threading.RLock()
        self._is_executing = False
        # A package without a path is executed before its submodules are imported.
        self._path = module.__dict__.pop("__path__", None)
        module.__class__ = _LazyModule

    def load(self, module: types.ModuleType) -> None:
        """Executes the module, unless it has been executed or this thread is executing it."""
        with self._lock:
            if self._is_executing or not isinstance(module, _LazyModule):
                return
            self._is_executing = True
            try:
                if self._path is not None:
                    module.__dict__["__path__"] = self._path
                super().exec_module(module)
                ordinary: Any = types.ModuleType
                module.__class__ = ordinary
            finally:
                self._is_executing = False


class _LazyModule(types.ModuleType):
    """Module that is not executed before one of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute that is missing before the module is executed."""
        if name not in _NOT_A_USE:
            _load(self)
        return types.ModuleType.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        _load(self)
        types.ModuleType.__setattr__(self, name, value)

    def __dir__(self) -> Iterable[str]:
        _load(self)
        return types.ModuleType.__dir__(self)


def _load(module: types.ModuleType) -> None:
    loader = module.__spec__.loader if module.__spec__ else None
    if isinstance(loader, _LazyLoader):
        loader.load(module)
