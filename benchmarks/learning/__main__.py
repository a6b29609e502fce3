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
from official.xlnet.cli import set_environment_defaults
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
        "--text", required=True, help="text file, one paragraph per line, blank between documents"
    )
    parser.add_argument("--output", required=True, help="directory for vocabulary, data and models")
    parser.add_argument("--document", help="Markdown file whose tables to write")
    parser.add_argument(
        "--steps", type=int, default=600, help="training steps of the runs with and without memory"
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    arguments = parser.parse_args()
    set_environment_defaults()

    _prepare(arguments.text, arguments.output)
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


def _prepare(text: str, output: str) -> None:
    """Trains the vocabulary and prepares data sets with the recipe's windows and short ones."""
    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare
    from official.xlnet.configs.experiment import XLNetConfig

    vocab = os.path.join(output, "vocab")
    train_vocabulary([text], vocab, _VOCAB_SIZE)
    for name, overrides in (("data", ()), ("short_data", _SHORT_WINDOWS)):
        prepare([text], vocab, XLNetConfig.load(_CONFIG, overrides), os.path.join(output, name))


def _run(
    output: str, name: str, data_name: str, overrides: tuple[str, ...], minutes: float | None = None
) -> dict[str, float]:
    """Trains and evaluates a model; returns the metrics of `evaluate`, and `step`."""
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.training.evaluation import evaluate
    from official.xlnet.training.pretraining import pretrain

    print(name, *overrides, file=sys.stderr)
    model, data = os.path.join(output, name), os.path.join(output, data_name)
    metrics = pretrain(XLNetConfig.load(_CONFIG, overrides), data, model, minutes=minutes)
    return {**evaluate(model, data), "step": metrics["step"]}


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
    return f"""\
| {recipe["step"]} steps, {num_cores()} CPU core(s) | loss |
|---|---|
| unigram baseline | {recipe["unigram_loss"]:.3f} |
| tiny | {recipe["loss"]:.3f} |
| difference | {recipe["unigram_loss"] - recipe["loss"]:.3f} |"""


def _memory_table(compared: list[dict[str, dict[str, float]]], steps: int) -> str:
    rows = "\n".join(
        f"| {number} | {seed['with']['loss']:.3f} | {seed['without']['loss']:.3f} |"
        for number, seed in enumerate(compared)
    )
    return f"""\
| seed, {steps} steps | with memory | without |
|---|---|---|
{rows}
| mean | {_mean(compared, "with"):.3f} | {_mean(compared, "without"):.3f} |"""


if __name__ == "__main__":
    main()
