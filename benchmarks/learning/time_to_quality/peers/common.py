"""Flags and learning rate of the peers' training programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness.command_line import parse, required
from benchmarks.learning.time_to_quality.runs import NUM_CHECKPOINTS

WARMUP_STEPS = 150
WEIGHT_DECAY = 0.01  # The usual one of AdamW; that of our recipe is for Muon.
_LOWEST_RATE = 0.02  # Share of the peak rate that the decay ends at.


def arguments() -> argparse.Namespace:
    """The flags that `runs.train` gives."""
    paths = {name: required("path") for name in ("config", "windows", "vocab", "data", "output")}
    numbers = {name: required("number", type=int) for name in ("steps", "seed")}
    return parse(__doc__, **paths, **numbers, rate=required("number", type=float))


def steps(
    flags: argparse.Namespace, save: Callable[[int], None]
) -> Iterator[tuple[float, np.random.Generator]]:
    """Yields the learning rate and a random generator of each step.

    The rate warms up and decays linearly. `save(step)` is called at six steps, as of our recipe.

    Args:
      flags: the flags.
      save: saves a checkpoint.
    """
    for step in range(flags.steps):
        decay = max(_LOWEST_RATE, 1 - step / flags.steps)
        rate = flags.rate * min(1.0, (step + 1) / WARMUP_STEPS) * decay
        yield rate, np.random.default_rng([flags.seed, step])
        if (step + 1) % -(-flags.steps // NUM_CHECKPOINTS) == 0 or step + 1 == flags.steps:
            save(step + 1)
