"""BERT against XLNet on the same text at toy scale (table 1 of the paper), with several seeds.

    python -m benchmarks.learning.rivals --text=FILE --data=DIR --output=DIR --document=PAGE.md

Rows are recipes in configs/ablation: BERT, RoBERTa's setting, whole words, and XLNet with and
without memory, each with its own network and initial scale. Each is pre-trained on the same text
with the same compute. The first seed tries every one of `--rates`; the other seeds have the one
with the lowest loss of the row's own objective on the first half of the held-out windows. The page
compares, on the second half, the likelihood of the same tokens and spans, and accuracy after
fine-tuning on tables with the same settings, beside a bag of words. Finished runs are not repeated;
pre-training that was not begun within `--minutes` is left out.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, required
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import (
    Difference,
    difference,
    mean_and_interval,
    over_runs,
    with_verdicts,
)
from benchmarks.learning import ablation
from benchmarks.learning.common import (
    MINUTES,
    SEEDS,
    SET,
    TEXT,
    accuracy,
    kept,
    model_with,
    parse_experiment,
    publish,
)
from official import xlnet
from official.xlnet.files.json_files import write_json
from official.xlnet.tasks.reports import PREDICTIONS_FILE

# As published. The recipes have XLNet's initial scale, so that rows of the ablation differ less.
_BERT = ("model.init_std=0.02",)
_OURS = "xlnet_k6"
_WHOLE_WORDS = ("target_unit=word", "max_span=0")
# {row: (title, recipe, how many steps take the compute of one of XLNet, `key=value` overrides)}. On
# one core, a step of BERT takes 68 ms, of XLNet without memory 66 ms and of XLNet 96 ms.
ROWS: dict[str, tuple[str, str, float, tuple[str, ...]]] = {
    "bert": ("BERT", "bert", 1.43, _BERT),
    "roberta": ("BERT, RoBERTa's setting", "roberta", 1.43, _BERT),
    "whole_words": ("BERT, whole words", "roberta", 1.43, (*_BERT, *_WHOLE_WORDS)),
    "no_memory": ("XLNet without memory", "no_memory", 1.45, ()),
    _OURS: ("XLNet, K = 6", "xlnet_k6", 1.0, ()),
}
_ALL = "all"
_BASELINES = {"bag_of_words": "bag of words", "majority": "most frequent label"}
_TITLES = {row: title for row, (title, *_) in ROWS.items()} | _BASELINES
_LIKELIHOODS = ("token", "span, left to right", "span, context alone")
_WARMUP = 10  # One step in so many.
_FINETUNING = [
    "task.summary=mean",  # CLS is not a good summary in a network this small.
    "learning_rate=1e-3",
    "task.epochs=2",
    "task.max_length=64",
    "checkpoint_steps=1000000",
]


@dataclasses.dataclass(frozen=True)
class Run:
    """A row, and what it is trained with.

    Attributes:
      row: a key of `ROWS`.
      steps: number of steps of XLNet with the same compute.
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
        _, _, factor, overrides = ROWS[self.row]
        number = round(factor * self.steps)
        steps = f"num_steps={number}", f"warmup_steps={number // _WARMUP}"
        return [*overrides, f"learning_rate={self.rate:g}", *steps]


# Results of runs. `own_loss` selects the learning rate; `windows` are {likelihood: of each reported
# window}, in nats; `correct` is {task: whether the prediction for each example of dev is right}.
Results = dict[Run, dict[str, Any]]
Baselines = dict[str, dict[str, float]]  # {task: {baseline: accuracy}}.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        data=required("directory with TASK/{train,dev}.tsv"),
        tasks=flag(["sst2", "cr", "mr", "mpqa", "rte"], "tasks to fine-tune on"),
        rows=flag(list(ROWS), "rows to train, by file name"),
        steps=flag(6000, "number of steps of XLNet"),
        rates=flag(["1e-3", "3e-3", "6e-3"], "learning rates to try"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
    )
    deadline = time.monotonic() + 60 * flags.minutes
    ablation.prepare_data(flags.text, flags.output, flags.set)
    results: Results = {}

    def train(run: Run) -> None:
        if time.monotonic() < deadline or os.path.exists(_results_of(run, flags.output)):
            results[run] = trained(run, flags.output, flags.set)

    for row, rate in itertools.product(flags.rows, map(float, flags.rates)):
        train(Run(row, flags.steps, rate, 0))
    best = best_of(results)
    for seed, run in itertools.product(range(1, flags.seeds), best.values()):
        train(dataclasses.replace(run, seed=seed))
    compared = {run: found for run, found in results.items() if run.rate == best[run.row].rate}
    baselines: Baselines = {}
    for task, (run, found) in itertools.product(flags.tasks, compared.items()):
        parts = [os.path.join(flags.data, task, f"{part}.tsv") for part in ("train", "dev")]
        model_dir = finetuned(run, task, parts, flags.output)
        found.setdefault("correct", {})[task] = _correct(model_dir)
        if task not in baselines:
            baselines[task] = baselines_of(model_dir, *parts)
    rows = summary(compared, baselines)
    found = tables(rows)
    print(*found.values(), sep="\n\n", file=sys.stderr)
    if flags.document:
        publish(flags.document, "rivals", rows, found)
    print(json.dumps({run.name: found["own_loss"] for run, found in results.items()}))


def trained(run: Run, output: str, overrides: list[str]) -> dict[str, Any]:
    """Pre-trains one row, unless its results exist.

    Args:
      run: the run.
      output: directory of data, models and results.
      overrides: `key=value` overrides.

    Returns:
      The results of `ablation.trained`; `own_loss`, the loss of the model's own objective on the
      first half of the held-out windows of each lane; and `windows`, the negative log-likelihoods,
      in nats, of one token of each window of the second half given all others, and of its span in
      both readings.
    """
    path = _results_of(run, output)
    model_dir = os.path.join(output, "models", run.name)
    settings, recipe = [*run.settings, *overrides], ROWS[run.row][1]
    result = kept(
        path,
        lambda: ablation.trained(recipe, run.seed, output, settings, model_dir),
        ablation.recipe_of(recipe),
    )
    if "windows" not in result:
        from benchmarks.learning.span_likelihood import READINGS, choose_token

        data = os.path.join(output, "forward")
        result["own_loss"] = _own_loss(model_dir, data)
        token = ablation.spans_of(model_dir, data, choose_token)[READINGS[0]]
        losses = (token, *ablation.spans_of(model_dir, data).values())
        halves = (loss[-(-len(loss) // 2) :] for loss in losses)
        result["windows"] = {
            name: np.nansum(loss[~np.isnan(loss[:, 0])], axis=1).tolist()
            for name, loss in zip(_LIKELIHOODS, halves, strict=True)
        }
        write_json(path, result, indent=None)
    return result


def _own_loss(model_dir: str, data_dir: str) -> float:
    """Loss of the model's own objective on the first half of the held-out windows of each lane."""
    from official.xlnet.data.pretraining_dataset import Records

    size = Records(data_dir).largest_batch("heldout", 64)
    batches = xlnet.pretraining_dataset(data_dir, size, "heldout", epochs=1)
    first_half = batches.take(sum(1 for _ in batches) // 2)
    model = model_with(model_dir, batch_size=size)
    model.compile(jit_compile=model.config.training.jit_compile)
    return float(model.evaluate(first_half, verbose=0, return_dict=True)["loss"])


def _results_of(run: Run, output: str) -> str:
    return os.path.join(output, "runs", f"{run.name}.json")


def best_of(results: Results) -> dict[str, Run]:
    """The run of each row with the best rate."""
    by_loss = sorted(results, key=lambda run: results[run]["own_loss"], reverse=True)
    best = {run.row: run for run in by_loss}
    return {row: best[row] for row in ROWS if row in best}


def finetuned(run: Run, task: str, tables: list[str], output: str) -> str:
    """Fine-tunes on a task, unless it was; returns the model directory.

    Args:
      run: the run whose model to start from.
      task: name of the task.
      tables: its training and development table.
      output: directory of data, models and results.
    """
    start = os.path.join(output, "models", run.name)
    model_dir = f"{start}-{task}"
    if not os.path.exists(os.path.join(model_dir, PREDICTIONS_FILE)):
        accuracy(start, tables, model_dir, [*_FINETUNING, f"training.seed={run.seed}"])
    return model_dir


def _correct(model_dir: str) -> list[bool]:
    with open(os.path.join(model_dir, PREDICTIONS_FILE), encoding="utf-8") as file:
        return [line["label"] == line["expected"] for line in map(json.loads, file)]


def baselines_of(model_dir: str, train: str, dev: str) -> dict[str, float]:
    """Returns the accuracy of a bag of words and of the most frequent label on dev.

    Args:
      model_dir: a model that was fine-tuned on the task.
      train: its training table.
      dev: its development table.
    """
    from data_prep.tasks.task_data import read_task
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.projects.survey.text_baselines import text_baselines
    from official.xlnet.tasks.classification.task import Classification

    task = Classification(xlnet.load_config(model_dir), load_tokenizer(model_dir))
    tables = (read_task(table, task.config.task)[0] for table in (train, dev))
    found = text_baselines(task, *tables)
    return {name: found[name]["accuracy"] for name in _BASELINES}


def measures_of(runs: Sequence[dict[str, Any]], tasks: Sequence[str]) -> dict[str, np.ndarray]:
    """All that is compared, item by item: likelihoods of windows in nats, correctness in percent.

    Args:
      runs: results of a row, one for each seed.
      tasks: the tasks; `_ALL` has the examples of all.

    Returns:
      {measure: float [S, E]}, of each seed and window or example.
    """
    nats = {name: np.array([run["windows"][name] for run in runs]) for name in _LIKELIHOODS}
    shares = {task: 100.0 * np.array([run["correct"][task] for run in runs]) for task in tasks}
    return nats | shares | {_ALL: np.concatenate([*shares.values()], axis=1)}


def summary(results: Results, baselines: Baselines) -> list[dict[str, Any]]:
    """Returns what the page shows and stores of each row and baseline.

    Differences are what XLNet is ahead by. Their error counts windows or examples, the same of
    both, and seeds; examples of a bag of words are not the same, as only its accuracy is known.

    Args:
      results: the results of the runs of each row at its best rate.
      baselines: see `baselines_of`.
    """
    tasks = list(baselines)
    rows = {row: [run for run in results if run.row == row] for row in best_of(results)}
    measures = {row: measures_of([results[run] for run in rows[row]], tasks) for row in rows}
    ours = measures.get(_OURS)
    sizes = [measures[next(iter(rows))][task].shape[1] for task in tasks]
    entries: list[dict[str, Any]] = [
        {
            "row": row,
            "rate": runs[0].rate,
            "means": {name: x.mean(axis=1).tolist() for name, x in measures[row].items()},
            "differences": _ahead(ours, measures[row]) if ours and row != _OURS else {},
            "measured": results[runs[0]]["measured"],
        }
        for row, runs in rows.items()
    ]
    for name in _BASELINES:
        shares = [100 * baselines[task][name] for task in tasks]
        mean = float(np.average(shares, weights=sizes))
        error = mean * (100 - mean) / sum(sizes), sum(sizes) - 1
        ahead = {_ALL: _difference(ours[_ALL] - mean, error)} if ours else {}
        means = {task: [share] for task, share in zip((*tasks, _ALL), (*shares, mean), strict=True)}
        entries.append({"row": name, "means": means, "differences": ahead, "measured": []})
    return entries


def _ahead(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> dict:
    """What XLNet is ahead by: lower losses, higher accuracy."""
    losses = {name: _difference(theirs[name] - ours[name]) for name in _LIKELIHOODS}
    return losses | {_ALL: _difference(ours[_ALL] - theirs[_ALL])}


def tables(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats a `summary`: means over seeds with their intervals, and differences."""
    tasks = [name for name in rows[0]["means"] if name not in _LIKELIHOODS]
    compared = (*_LIKELIHOODS, _ALL)
    rivals = [["", "rate", "seeds", *_LIKELIHOODS]]
    accuracies = [["", *tasks]]
    differences = [["XLNet against", *_LIKELIHOODS, f"{_ALL}, %"]]
    found = [row["differences"].get(name) for row in rows for name in compared]
    cells = iter(with_verdicts([values and Difference(*values) for values in found], 2))
    for row in rows:
        title, means = _TITLES[row["row"]], row["means"]
        ahead = [*itertools.islice(cells, len(compared))]
        differences += [[title, *ahead]] if any(ahead) else []
        accuracies.append([title, *(mean_and_interval(means[task], 1) for task in tasks)])
        if "rate" in row:
            shown = [mean_and_interval(means[name]) for name in _LIKELIHOODS]
            rivals.append([title, f"{row['rate']:g}", str(len(means[_ALL])), *shown])
    tables = {"rivals": rivals, "accuracy": accuracies, "differences": differences}
    return {name: markdown_table(lines) for name, lines in tables.items()}


def _difference(values: np.ndarray, *others: tuple[float, int]) -> Difference:
    """Mean difference [S, E] of seeds and items; both, and other sources, have an error."""
    sources = over_runs(values.mean(axis=1)), over_runs(values.mean(axis=0)), *others
    return difference(float(values.mean()), *sources)


if __name__ == "__main__":
    main()
