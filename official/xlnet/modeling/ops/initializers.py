"""Weight initialization: normal with a small standard deviation, as in the paper's release."""

from __future__ import annotations

import tf_keras


def normal(stddev: float) -> tf_keras.initializers.Initializer:
    """A new normal initializer; one that is used twice would give the same values twice."""
    return tf_keras.initializers.RandomNormal(stddev=stddev)
