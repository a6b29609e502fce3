"""Learning benchmark: the effect of memory.

    python -m benchmarks.learning --text=FILE --output=DIR --document=docs/learning.md

Trains the network of `tiny` on short windows with and without memory, with several seeds and equal
steps. Interrupted runs resume when the command is run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.learning.common import SEEDS, TEXT, make_data, parse_experiment
from official import xlnet

_MEM_LEN = 64  # Of the runs with memory.
_CONFIG = "configs/tiny.yaml"
_VOCAB_SIZE = 4000
# A network trained for minutes has an effective context of about 16 tokens
# (docs/attention_length.md), so memory matters at the start of windows. These windows are four
# times shorter than those of the recipe.
_SHORT_WINDOWS = (
    *("data.seq_len=32", "data.reuse_len=16", "data.num_predict=10", "data.num_lanes=64"),
    "training.batch_size=64",
)


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        seeds=SEEDS,
        steps=flag(600, "training steps of the runs with and without memory"),
    )
    configs = {"data": xlnet.XLNetConfig.load(_CONFIG, _SHORT_WINDOWS)}
    make_data([flags.text], flags.output, configs, _VOCAB_SIZE)
    compared = {seed: _compare_memory(flags, seed) for seed in range(flags.seeds)}
    means = np.mean(list(compared.values()), axis=0)
    rows = [
        (f"seed, {flags.steps} steps", "with memory", "without"),
        *((name, *(f"{loss:.3f}" for loss in pair)) for name, pair in compared.items()),
        ("mean", *(f"{loss:.3f}" for loss in means)),
    ]
    print(table := markdown_table(rows), file=sys.stderr)
    if flags.document:
        fill_table(flags.document, "memory", table, [_CONFIG])
    print(json.dumps({"memory_gain": means[1] - means[0]}))


def _loss(output: str, name: str, *overrides: str) -> float:
    """Trains a model; returns its loss on held-out documents."""
    print(name, *overrides, file=sys.stderr)
    model, data = os.path.join(output, name), os.path.join(output, "data")
    xlnet.pretrain(_CONFIG, data, model, overrides)
    return xlnet.evaluate(model, data)["loss"]


def _compare_memory(flags: argparse.Namespace, seed: int) -> list[float]:
    """Returns the held-out losses with memory and without."""
    steps = f"num_steps={flags.steps}", f"warmup_steps={flags.steps // 8}"
    settings = *_SHORT_WINDOWS, *steps, f"training.seed={seed}"
    return [
        _loss(flags.output, f"{name}_{seed}", *settings, f"mem_len={length}")
        for name, length in (("with", _MEM_LEN), ("without", 0))
    ]


if __name__ == "__main__":
    main()
