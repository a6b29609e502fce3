"""BERT against XLNet on the same text at toy scale (table 1 of the paper), with several seeds.

    python -m benchmarks.learning.rivals --text=FILE --data=DIR --output=DIR --document=rivals.md

Rows are recipes in configs/ablation: BERT, RoBERTa's setting and XLNet, each with its own network
and initial scale. Each is pre-trained on the same text for the same numbers of tokens (`--steps`).
The first seed tries every one of `--rates`; the one with the lowest loss of held-out spans is kept
for the other seeds. The page compares what can be: the likelihood of the same held-out tokens and
spans, and accuracy after fine-tuning on tables with the same settings.
Finished runs are not repeated; what was not begun within `--minutes` is left out.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import os
import sys
import time
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, required
from benchmarks.harness.tables import fill_table, markdown_table, mean_and_spread
from benchmarks.learning import ablation
from benchmarks.learning.common import (
    MINUTES,
    SEEDS,
    SET,
    TEXT,
    accuracy,
    kept,
    parse_experiment,
)
from official.xlnet.files.json_files import write_json

# As published. The recipes have XLNet's initial scale, so that rows of the ablation differ less.
_BERT = ("model.init_std=0.02",)
ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bert": ("BERT", _BERT),
    "roberta": ("BERT, RoBERTa's setting", _BERT),
    "xlnet_k6": ("XLNet, K = 6", ()),
}
_READINGS = ("span, left to right", "span, context alone")
_WARMUP = 10  # One step in so many.
_FINETUNING = [
    "task.summary=mean",  # CLS is not a good summary in a network this small.
    *("learning_rate=1e-3", "task.epochs=2", "task.max_length=64"),
    "checkpoint_steps=1000000",
]


@dataclasses.dataclass(frozen=True)
class Run:
    """A row, and what it is trained with.

    Attributes:
      row: name of a recipe in configs/ablation.
      steps: number of steps.
      rate: peak learning rate.
      seed: random seed.
    """

    row: str
    steps: int
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """Name of the run's model and results."""
        return f"{self.row}-{self.steps}-{self.rate:g}-{self.seed}"

    @property
    def settings(self) -> list[str]:
        """`key=value` overrides of the recipe."""
        steps = f"num_steps={self.steps}", f"warmup_steps={self.steps // _WARMUP}"
        return [*ROWS[self.row][1], f"learning_rate={self.rate:g}", *steps]


Results = dict[Run, dict[str, Any]]


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        data=required("directory with TASK/{train,dev}.tsv"),
        tasks=flag(["sst2", "cr"], "tasks to fine-tune on"),
        rows=flag(list(ROWS), "rows to train, by file name"),
        steps=flag(["600", "6000"], "numbers of steps"),
        rates=flag(["1e-3", "3e-3", "6e-3"], "learning rates to try"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
    )
    deadline = time.monotonic() + 60 * flags.minutes
    tables = {
        task: [os.path.join(flags.data, task, f"{part}.tsv") for part in ("train", "dev")]
        for task in flags.tasks
    }
    ablation.prepare_data(flags.text, flags.output, flags.set)
    results: Results = {}

    def train(run: Run) -> None:
        if time.monotonic() < deadline or os.path.exists(_results_of(run, flags.output)):
            results[run] = trained(run, flags.output, flags.set)

    cases = itertools.product(flags.rows, map(int, flags.steps), map(float, flags.rates))
    for row, steps, rate in cases:
        train(Run(row, steps, rate, 0))
    best = best_of(results)
    for seed, run in itertools.product(range(1, flags.seeds), best):
        train(dataclasses.replace(run, seed=seed))
    for run in results:
        if dataclasses.replace(run, seed=0) in best:
            is_time = time.monotonic() < deadline
            finetune(run, results[run], flags.output, tables if is_time else {})
    table = table_of(results, {task: majority(dev) for task, (_, dev) in tables.items()})
    print(table, file=sys.stderr)
    if flags.document:
        recipes = [f"{ablation.CONFIGS}/{row}.yaml" for row in flags.rows]
        fill_table(flags.document, "rivals", table, recipes)
    print(json.dumps({run.name: result["span_losses"]["span"] for run, result in results.items()}))


def trained(run: Run, output: str, overrides: list[str]) -> dict[str, Any]:
    """Pre-trains one row, unless its results exist.

    Args:
      run: the run.
      output: directory of data, models and results.
      overrides: `key=value` overrides.

    Returns:
      The results of `ablation.trained`, and `token_loss`, in nats: of one token of each held-out
      window, given all others.
    """
    path = _results_of(run, output)
    model_dir = os.path.join(output, "models", run.name)
    settings = [*run.settings, *overrides]
    result = kept(path, lambda: ablation.trained(run.row, run.seed, output, settings, model_dir))
    if "token_loss" not in result:
        from benchmarks.learning.span_likelihood import READINGS, choose_token

        losses = ablation.spans_of(model_dir, os.path.join(output, "forward"), choose_token)
        result["token_loss"] = float(np.nanmean(losses[READINGS[0]][:, 0]))
        write_json(path, result, indent=None)
    return result


def _results_of(run: Run, output: str) -> str:
    return os.path.join(output, "runs", f"{run.name}.json")


def best_of(results: Results) -> list[Run]:
    """The run of the first seed with the best rate, of each row and number of steps."""
    groups: dict[tuple[str, int], list[Run]] = {}
    for run in results:
        if run.seed == 0:
            groups.setdefault((run.row, run.steps), []).append(run)
    return [min(runs, key=lambda run: _span(results[run])) for runs in groups.values()]


def finetune(run: Run, result: dict[str, Any], output: str, tables: dict[str, list[str]]) -> None:
    """Fine-tunes on each task that has not been, and adds `accuracy` {task: share of dev}.

    Args:
      run: the run.
      result: its results, changed in place.
      output: directory of data, models and results.
      tables: {task: [training table, development table]}.
    """
    path = os.path.join(output, "accuracy", f"{run.name}.json")
    result["accuracy"] = kept(path, dict)
    model_dir = os.path.join(output, "models", run.name)
    for task in tables.keys() - result["accuracy"].keys():
        settings = [*_FINETUNING, f"training.seed={run.seed}"]
        found = accuracy(model_dir, tables[task], f"{model_dir}-{task}", settings)
        result["accuracy"][task] = found
        write_json(path, result["accuracy"])


def majority(table: str) -> float:
    """Returns the share of the most frequent label, the first column of a table."""
    with open(table, encoding="utf-8") as file:
        labels = [line.split("\t")[0] for line in file][1:]
    return max(collections.Counter(labels).values()) / len(labels)


def table_of(results: Results, majorities: dict[str, float]) -> str:
    """Formats means and standard deviations over seeds, each row at its best rate, as Markdown.

    Args:
      results: the results of each run.
      majorities: {task: accuracy of the most frequent label}.
    """
    titles = ["steps", "rate", "seeds", "training loss", "token", *_READINGS]
    lines = [["", *titles, *majorities]]
    for best in best_of(results):
        runs = [found for run, found in results.items() if dataclasses.replace(run, seed=0) == best]
        tasks = ([100 * run["accuracy"].get(task, np.nan) for run in runs] for task in majorities)
        lines.append(
            [
                *(ROWS[best.row][0], f"{best.steps:,}", f"{best.rate:g}", str(len(runs))),
                mean_and_spread([_training_loss(run) for run in runs], 2),
                mean_and_spread([run["token_loss"] for run in runs]),
                mean_and_spread([_span(run) for run in runs]),
                mean_and_spread([run["span_alone"] for run in runs]),
                *(mean_and_spread(values, 1) for values in tasks),
            ]
        )
    shares = [f"{100 * share:.1f}" for share in majorities.values()]
    lines.append(["most frequent label", *[""] * len(titles), *shares])
    return markdown_table(lines)


def _span(result: dict[str, Any]) -> float:
    return result["span_losses"]["span"]


def _training_loss(result: dict[str, Any]) -> float:
    """Mean over the last twentieth of the run."""
    losses = result["training_loss"]
    return float(np.mean(losses[-max(1, len(losses) // 20) :]))


if __name__ == "__main__":
    main()
