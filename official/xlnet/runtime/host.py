"""State of the process that calls us, which our functions leave as it was."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator

import numpy as np

_SET_BY_SKLEARN = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK")


@contextlib.contextmanager
def host_state_kept() -> Iterator[None]:
    """Restores the random state of Python and NumPy, and the variables that sklearn sets.

    TensorFlow and Keras have no public way to read theirs: they keep the seed of the run.
    """
    absent = [name for name in _SET_BY_SKLEARN if name not in os.environ]
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
        for name in absent:
            os.environ.pop(name, None)
