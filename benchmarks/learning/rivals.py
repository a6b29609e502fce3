"""BERT against XLNet on the same text at toy scale (table 1 of the paper), with several seeds.

    python -m benchmarks.learning.rivals --text=FILE --data=DIR --output=DIR --document=rivals.md

Rows are recipes in configs/ablation: BERT, RoBERTa's setting and XLNet, each with its own network.
Each is pre-trained on the same text for the same number of tokens. The page compares what can
be: the likelihood of the same held-out spans (`span_likelihood`), and accuracy after fine-tuning on
labeled tables with the same settings. Finished runs are not repeated.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.learning import ablation
from benchmarks.learning.ablation_report import milliseconds_per_step
from benchmarks.learning.common import (
    accuracy,
    kept,
    markdown_table,
    mean_and_spread,
    parse_arguments,
)
from official.xlnet.files.json_files import read_json, write_json

ROWS = {"bert": "BERT", "roberta": "BERT, RoBERTa's setting", "xlnet_k6": "XLNet, K = 6"}
_FINETUNING = [
    "task.summary=mean",  # CLS is not a good summary in a network this small.
    *("learning_rate=1e-3", "task.epochs=2", "task.max_length=64"),
    "checkpoint_steps=1000000",
]
Results = dict[str, list[dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="directory with TASK/{train,dev}.tsv")
    parser.add_argument("--tasks", default="sst2,cr", help="tasks to fine-tune on")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows to train, by file name")
    arguments = parse_arguments(parser, "text", "seeds", "minutes", "set")
    deadline = time.monotonic() + 60 * (arguments.minutes or np.inf)
    tables = {
        task: [os.path.join(arguments.data, task, f"{part}.tsv") for part in ("train", "dev")]
        for task in arguments.tasks.split(",")
    }
    ablation.prepare_data(arguments.text, arguments.output, arguments.set)
    results: Results = {row: [] for row in arguments.rows.split(",")}
    for seed in range(arguments.seeds):
        for row, runs in results.items():
            if time.monotonic() < deadline:
                runs.append(run(row, seed, arguments.output, arguments.set, tables))
    table = table_of(results, {task: majority(dev) for task, (_, dev) in tables.items()})
    print(table, file=sys.stderr)
    if arguments.document:
        fill_table(arguments.document, "rivals", table)
    print(json.dumps({row: len(runs) for row, runs in results.items()}))


def run(
    row: str, seed: int, output: str, overrides: list[str], tables: dict[str, list[str]]
) -> dict[str, Any]:
    """Pre-trains one row with one seed and fine-tunes it, unless its results exist.

    Args:
      row: name of the row.
      seed: random seed.
      output: directory of data, models and results.
      overrides: `key=value` overrides.
      tables: {task: [training table, development table]}.

    Returns:
      The results of `ablation.run`, and `accuracy` {task: share of dev}.
    """
    ablation.run(row, seed, output, overrides, None)
    result = read_json(os.path.join(output, "runs", f"{row}-{seed}.json"))
    path = os.path.join(output, "accuracy", f"{row}-{seed}.json")
    result["accuracy"] = kept(path, dict)
    model_dir = os.path.join(output, "models", f"{row}-{seed}")
    for task in tables.keys() - result["accuracy"].keys():
        settings = [*_FINETUNING, f"training.seed={seed}"]
        found = accuracy(model_dir, tables[task], f"{model_dir}-{task}", settings)
        result["accuracy"][task] = found
        write_json(path, result["accuracy"])
    return result


def majority(table: str) -> float:
    """Returns the share of the most frequent label, the first column of a table."""
    with open(table, encoding="utf-8") as file:
        labels = [line.split("\t")[0] for line in file][1:]
    return max(collections.Counter(labels).values()) / len(labels)


def table_of(results: Results, majorities: dict[str, float]) -> str:
    """Formats means and standard deviations over seeds as a Markdown table.

    Args:
      results: {row: results of each seed}.
      majorities: {task: accuracy of the most frequent label}.
    """
    titles = ["", "seeds", "span", "first token", "later tokens", *majorities, "ms per step"]
    lines = [titles]
    for row, runs in results.items():
        if not runs:
            continue
        places = [
            [run["span_losses"][place] for run in runs] for place in ("span", "first", "later")
        ]
        accuracies = [[100 * run["accuracy"][task] for run in runs] for task in majorities]
        lines.append(
            [
                *(ROWS[row], str(len(runs))),
                *(mean_and_spread(values) for values in places),
                *(mean_and_spread(values, 1) for values in accuracies),
                milliseconds_per_step(runs),
            ]
        )
    shares = [f"{100 * share:.1f}" for share in majorities.values()]
    lines.append(["most frequent label", "", "", "", "", *shares, ""])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
