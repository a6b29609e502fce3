"""Does it learn, and does memory help? Trains `tiny` on a text and evaluates held-out documents.

    python -m benchmarks.learning --text=FILE --output=DIR --document=docs/learning.md

First the whole recipe within ten minutes, then shorter runs with memory and without it, over
several seeds at equal steps. A run that was stopped continues when the command runs again.
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
_CONFIG = "configs/tiny.yaml"
# A net that has learned for minutes looks back some 16 tokens (docs/attention_length.md), so memory
# counts where windows begin: these begin four times as often as the recipe's.
_SHORT_WINDOWS = (
    *("data.seq_len=32", "data.reuse_len=16", "data.num_predict=10", "data.num_lanes=64"),
    "training.batch_size=64",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--text", required=True, help="one paragraph a line, blank between documents"
    )
    parser.add_argument("--output", required=True, help="directory for vocabulary, data and models")
    parser.add_argument("--document", help="Markdown file to write the tables into")
    parser.add_argument(
        "--steps", type=int, default=600, help="steps of the runs that are compared"
    )
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    arguments = parser.parse_args()
    set_environment_defaults()

    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.training.evaluation import evaluate
    from official.xlnet.training.pretraining import pretrain

    vocab, data, short_data = (
        os.path.join(arguments.output, name) for name in ("vocab", "data", "short_data")
    )
    tiny = XLNetConfig.load(_CONFIG)
    train_vocabulary([arguments.text], vocab, tiny.model.vocab_size)
    prepare([arguments.text], vocab, tiny, data)
    prepare([arguments.text], vocab, XLNetConfig.load(_CONFIG, _SHORT_WINDOWS), short_data)

    def run(name: str, data: str, minutes: float | None, *overrides: str) -> dict[str, float]:
        print(name, *overrides, file=sys.stderr)
        model = os.path.join(arguments.output, name)
        figures = pretrain(XLNetConfig.load(_CONFIG, overrides), data, model, minutes=minutes)
        return {**evaluate(model, data), "step": figures["step"]}

    recipe = run("recipe", data, _MINUTES)
    steps = f"num_steps={arguments.steps}", f"warmup_steps={arguments.steps // 8}"
    short = *_SHORT_WINDOWS, *steps
    compared = [
        {
            name: run(
                *(f"{name}_{seed}", short_data, None, *short),
                *(f"training.seed={seed}", f"mem_len={length}"),
            )
            for name, length in (("with", tiny.model.mem_len), ("without", 0))
        }
        for seed in range(arguments.seeds)
    ]
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


def _mean(compared: list[dict[str, dict[str, float]]], name: str) -> float:
    return float(np.mean([seed[name]["loss"] for seed in compared]))


def _recipe_table(recipe: dict[str, float]) -> str:
    return f"""\
| {recipe["step"]} steps, {num_cores()} CPU core(s) | loss |
|---|---|
| word counts alone | {recipe["unigram_loss"]:.3f} |
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
