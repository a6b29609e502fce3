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

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.learning.common import make_data, markdown_table, parse_arguments
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
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--steps", type=int, default=600, help="training steps of the runs with and without memory"
    )
    arguments = parse_arguments(parser, "text", "seeds")
    configs = {
        "data": xlnet.XLNetConfig.load(_CONFIG),
        "short_data": xlnet.XLNetConfig.load(_CONFIG, _SHORT_WINDOWS),
    }
    make_data([arguments.text], arguments.output, configs, _VOCAB_SIZE)
    recipe = _run(arguments.output, "recipe", "data", (), _MINUTES)
    compared = _compare_memory(arguments.output, arguments.steps, arguments.seeds)
    tables = {"recipe": _recipe_table(recipe), "memory": _memory_table(compared, arguments.steps)}
    for name, table in tables.items():
        print(table, file=sys.stderr)
        if arguments.document:
            fill_table(arguments.document, name, table)
    print(
        json.dumps(
            {
                "gain": recipe["unigram_loss"] - recipe["loss"],
                "memory_gain": _mean(compared, "without") - _mean(compared, "with"),
            }
        )
    )


def _run(
    output: str, name: str, data_name: str, overrides: tuple[str, ...], minutes: float | None = None
) -> dict[str, float]:
    """Trains and evaluates a model; returns the metrics of `evaluate`, and `step`."""
    print(name, *overrides, file=sys.stderr)
    model, data = os.path.join(output, name), os.path.join(output, data_name)
    metrics = xlnet.pretrain(_CONFIG, data, model, overrides, minutes=minutes)
    return {**xlnet.evaluate(model, data), "step": metrics["step"]}


def _compare_memory(output: str, steps: int, seeds: int) -> list[dict[str, dict[str, float]]]:
    """Returns {"with": metrics, "without": metrics} for each seed."""
    settings = *_SHORT_WINDOWS, f"num_steps={steps}", f"warmup_steps={steps // 8}"
    return [
        {
            name: _run(
                output,
                f"{name}_{seed}",
                "short_data",
                (*settings, f"training.seed={seed}", f"mem_len={length}"),
            )
            for name, length in (("with", _MEM_LEN), ("without", 0))
        }
        for seed in range(seeds)
    ]


def _mean(compared: list[dict[str, dict[str, float]]], name: str) -> float:
    return float(np.mean([seed[name]["loss"] for seed in compared]))


def _recipe_table(recipe: dict[str, float]) -> str:
    losses = {"unigram baseline": recipe["unigram_loss"], "tiny": recipe["loss"]}
    losses["difference"] = recipe["unigram_loss"] - recipe["loss"]
    head = (f"{recipe['step']} steps, {num_cores()} CPU core(s)", "loss")
    return markdown_table([head, *((name, f"{loss:.3f}") for name, loss in losses.items())])


def _memory_table(compared: list[dict[str, dict[str, float]]], steps: int) -> str:
    losses: dict[object, list[float]] = {
        number: [seed[name]["loss"] for name in ("with", "without")]
        for number, seed in enumerate(compared)
    }
    losses["mean"] = [_mean(compared, "with"), _mean(compared, "without")]
    rows = [[name, *(f"{loss:.3f}" for loss in pair)] for name, pair in losses.items()]
    return markdown_table([[f"seed, {steps} steps", "with memory", "without"], *rows])


if __name__ == "__main__":
    main()
