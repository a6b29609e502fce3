"""Flags, learning rate and clock of the peers' training programs."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.harness.command_line import parse, required
from benchmarks.learning.time_to_quality.runs import PEER_CHECKPOINTS

WARMUP_STEPS = 150
WEIGHT_DECAY = 0.01  # The usual one of AdamW; that of our recipe is for Muon.
_LOWEST_RATE = 0.02  # Share of the peak rate that the decay ends at.


def arguments() -> argparse.Namespace:
    """The flags that `runs.train` gives."""
    paths = {name: required("path") for name in ("config", "windows", "vocab", "data", "output")}
    numbers = {name: required("number", type=float) for name in ("rate", "seconds")}
    return parse(__doc__, **paths, **numbers, seed=required("random seed", type=int))


def process_seconds() -> float:
    """Seconds since this process started, imports included."""
    with open("/proc/self/stat", encoding="ascii") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def steps(
    flags: argparse.Namespace, save: Callable[[int], None]
) -> Iterator[tuple[float, np.random.Generator]]:
    """Yields the learning rate and a random generator of each step until the time is over.

    The rate warms up linearly, and decays linearly over the time that the run has. `save(step)`
    is called at ten times, and at the end.

    Args:
      flags: the flags.
      save: saves a checkpoint.
    """
    step, saved = 0, 0
    while (now := process_seconds()) < flags.seconds:
        if now >= (saved + 1) * flags.seconds / PEER_CHECKPOINTS and step:
            save(step)
            saved = int(now * PEER_CHECKPOINTS / flags.seconds)
        share = min(1.0, (step + 1) / WARMUP_STEPS) * max(_LOWEST_RATE, 1 - now / flags.seconds)
        yield flags.rate * share, np.random.default_rng([flags.seed, step])
        step += 1
    save(step)
