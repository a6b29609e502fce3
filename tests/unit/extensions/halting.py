"""Adaptive depths whose rows halt after different numbers of steps."""

import numpy as np

from official.xlnet.extensions.universal.shared_depth import step_encoding
from tests.helpers.tiny import WIDTH


def vary_halting(depth, num_layers, seed=0):
    """Weights of an adaptive depth with which rows halt after different numbers of steps."""
    rng = np.random.default_rng(seed)
    kernel = rng.standard_normal(WIDTH) / 2
    # What all rows have in common, the encoding of a step, has no say.
    encodings = np.stack([step_encoding(1 + n, WIDTH) for n in range(num_layers)], axis=1)
    kernel -= encodings @ np.linalg.lstsq(encodings, kernel, rcond=None)[0]
    depth.halting_kernel.assign(kernel)
    depth.halting_bias.assign(-0.7)
