"""Learning benchmark: held-out loss of `tiny` after ten minutes, and the effect of memory.

    python -m benchmarks.learning --text=FILE --output=DIR --document=docs/learning.md

Trains the recipe for at most ten minutes, then makes shorter runs with and without memory, with
several seeds and equal steps. Interrupted runs resume when the command is run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.learning.common import SEEDS, TEXT, make_data, parse_experiment
from official import xlnet
from official.xlnet.runtime.cores import num_cores

_MINUTES = 10.0
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
    configs = {
        "data": xlnet.XLNetConfig.load(_CONFIG),
        "short_data": xlnet.XLNetConfig.load(_CONFIG, _SHORT_WINDOWS),
    }
    make_data([flags.text], flags.output, configs, _VOCAB_SIZE)
    recipe = _run(flags.output, "recipe", "data", minutes=_MINUTES)
    gain = recipe["unigram_loss"] - recipe["loss"]
    rows = {"unigram baseline": recipe["unigram_loss"], "tiny": recipe["loss"], "difference": gain}
    compared = {seed: _compare_memory(flags, seed) for seed in range(flags.seeds)}
    means = np.mean(list(compared.values()), axis=0)
    tables: dict[str, list[Sequence[object]]] = {
        "recipe": [
            (f"{recipe['step']} steps, {num_cores()} CPU core(s)", "loss"),
            *((name, f"{loss:.3f}") for name, loss in rows.items()),
        ],
        "memory": [
            (f"seed, {flags.steps} steps", "with memory", "without"),
            *((name, *(f"{loss:.3f}" for loss in pair)) for name, pair in compared.items()),
            ("mean", *(f"{loss:.3f}" for loss in means)),
        ],
    }
    for name, table in tables.items():
        print(text := markdown_table(table), file=sys.stderr)
        if flags.document:
            fill_table(flags.document, name, text)
    print(json.dumps({"gain": gain, "memory_gain": means[1] - means[0]}))


def _run(
    output: str, name: str, data_name: str, *overrides: str, minutes: float | None = None
) -> dict[str, float]:
    """Trains and evaluates a model; returns the metrics of `evaluate`, and `step`."""
    print(name, *overrides, file=sys.stderr)
    model, data = os.path.join(output, name), os.path.join(output, data_name)
    metrics = xlnet.pretrain(_CONFIG, data, model, overrides, minutes=minutes)
    return {**xlnet.evaluate(model, data), "step": metrics["step"]}


def _compare_memory(flags: argparse.Namespace, seed: int) -> list[float]:
    """Returns the held-out losses with memory and without."""
    steps = f"num_steps={flags.steps}", f"warmup_steps={flags.steps // 8}"
    settings = *_SHORT_WINDOWS, *steps, f"training.seed={seed}"
    return [
        _run(flags.output, f"{name}_{seed}", "short_data", *settings, f"mem_len={length}")["loss"]
        for name, length in (("with", _MEM_LEN), ("without", 0))
    ]


if __name__ == "__main__":
    main()
