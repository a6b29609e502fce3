"""State of the process that calls us, which our functions leave as it was."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np


@contextlib.contextmanager
def host_state_kept() -> Iterator[None]:
    """Restores the random state of Python and NumPy.

    TensorFlow and Keras have no public way to read theirs: they keep the seed of the run.
    """
    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
