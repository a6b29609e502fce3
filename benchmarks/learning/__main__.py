"""Learning benchmark: the effect of memory.

    python -m benchmarks.learning --text=FILE --output=DIR --document=docs/experiments.md

Trains the network of `tiny` on short windows with and without memory, with several seeds and equal
steps. Interrupted runs resume when the command is run again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import difference, over_runs, with_verdicts
from benchmarks.learning.common import SEEDS, TEXT, kept, make_data, parse_experiment, publish
from official import xlnet

# What results depend on besides training and recipes; see `harness.sources`.
CODE = (
    "benchmarks.learning.__main__:_compare_memory",
    "official.xlnet.modeling.objectives.permutation_lm",
)

_MEM_LEN = 64  # Of the runs with memory.
_CONFIG = "configs/tiny.yaml"
_VOCAB_SIZE = 4000
# A network trained for minutes has an effective context of about 16 tokens
# (docs/experiments.md), so memory matters at the start of windows. These windows are four
# times shorter than those of the recipe.
_SHORT_WINDOWS = (
    "data.seq_len=32",
    "data.reuse_len=16",
    "data.num_predict=10",
    "data.num_lanes=64",
    "training.batch_size=64",
)


def main() -> None:
    flags = parse_experiment(
        __doc__,
        CODE,
        text=TEXT,
        seeds=SEEDS,
        steps=flag(600, "training steps of the runs with and without memory"),
    )
    configs = {"data": xlnet.XLNetConfig.load(_CONFIG, _SHORT_WINDOWS)}
    make_data([flags.text], flags.output, configs, _VOCAB_SIZE)
    runs = [_compare_memory(flags, seed) for seed in range(flags.seeds)]
    found = tables(runs)
    print(found["memory"], file=sys.stderr)
    if flags.document:
        publish(flags.document, "memory", runs, found)
    print(json.dumps({"memory_gain": np.mean([run["without"] - run["with"] for run in runs])}))


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats losses with and without memory, and what memory is ahead by."""
    gains = [run["without"] - run["with"] for run in runs]
    [verdict] = with_verdicts([difference(np.mean(gains), over_runs(gains))])
    rows = [
        (f"seed, {runs[0]['steps']} steps", "with memory", "without"),
        *((run["seed"], *(f"{run[name]:.3f}" for name in ("with", "without"))) for run in runs),
        ("memory against none", verdict, ""),
    ]
    return {"memory": markdown_table(rows)}


def _loss(output: str, name: str, *overrides: str) -> float:
    """Trains a model; returns its loss on held-out documents."""
    print(name, *overrides, file=sys.stderr)
    model, data = os.path.join(output, name), os.path.join(output, "data")
    xlnet.pretrain(_CONFIG, data, model, overrides)
    return xlnet.evaluate(model, data)["loss"]


def _compare_memory(flags: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Returns the held-out losses with memory and without."""
    settings = (
        *_SHORT_WINDOWS,
        f"num_steps={flags.steps}",
        f"warmup_steps={flags.steps // 8}",
        f"training.seed={seed}",
    )

    def run() -> dict[str, Any]:
        losses = {
            name: _loss(flags.output, f"{name}_{seed}", *settings, f"mem_len={length}")
            for name, length in (("with", _MEM_LEN), ("without", 0))
        }
        return {"seed": seed, "steps": flags.steps} | losses

    return kept(os.path.join(flags.output, "runs", f"{seed}.json"), run, _CONFIG, code=CODE)


if __name__ == "__main__":
    main()
