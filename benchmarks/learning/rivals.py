"""BERT against XLNet on the same text at toy scale (table 1 of the paper), with several seeds.

    python -m benchmarks.learning.rivals --text=FILE --data=DIR --output=DIR --document=rivals.md

Rows are recipes in configs/ablation: BERT, RoBERTa's setting and XLNet, each with its own network
and initial scale. Each is pre-trained on the same text for the same number of tokens. The first
seed tries every one of `--rates`; the one with the lowest loss of held-out spans is kept for the
other seeds. The page compares what can be: the likelihood of the same held-out tokens and spans,
and accuracy after fine-tuning on tables with the same settings, beside a bag of words. Finished
runs are not repeated; pre-training that was not begun within `--minutes` is left out.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.command_line import flag, required
from benchmarks.harness.tables import fill_table, markdown_table, mean_and_spread
from benchmarks.learning import ablation
from benchmarks.learning.common import MINUTES, SET, TEXT, accuracy, kept, parse_experiment
from official import xlnet
from official.xlnet.files.json_files import write_json
from official.xlnet.tasks.reports import PREDICTIONS_FILE

# As published. The recipes have XLNet's initial scale, so that rows of the ablation differ less.
_BERT = ("model.init_std=0.02",)
_OURS = "xlnet_k6"
ROWS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bert": ("BERT", _BERT),
    "roberta": ("BERT, RoBERTa's setting", _BERT),
    _OURS: ("XLNet, K = 6", ()),
}
_ALL = "all"
_BASELINES = {"bag_of_words": "bag of words", "majority": "most frequent label"}
_LIKELIHOODS = ("token", "span, left to right", "span, context alone")
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


# Results of runs. `windows` are {likelihood: of each held-out window}, in nats; `correct` is
# {task: whether the prediction for each example of dev is right}.
Results = dict[Run, dict[str, Any]]
Baselines = dict[str, dict[str, float]]  # {task: {baseline: accuracy}}.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        data=required("directory with TASK/{train,dev}.tsv"),
        tasks=flag(["sst2", "cr", "mr", "mpqa", "rte"], "tasks to fine-tune on"),
        rows=flag(list(ROWS), "rows to train, by file name"),
        steps=flag(6000, "number of steps"),
        rates=flag(["1e-3", "3e-3", "6e-3"], "learning rates to try"),
        seeds=flag(2, "number of runs of each row at its best rate"),
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
        tables = [os.path.join(flags.data, task, f"{part}.tsv") for part in ("train", "dev")]
        model_dir = finetuned(run, task, tables, flags.output)
        found.setdefault("correct", {})[task] = _correct(model_dir)
        if task not in baselines:
            baselines[task] = baselines_of(model_dir, *tables)
    recipes = [f"{ablation.CONFIGS}/{row}.yaml" for row in flags.rows]
    for name, table in tables_of(compared, baselines).items():
        print(table, file=sys.stderr)
        if flags.document:
            fill_table(flags.document, name, table, recipes)
    print(json.dumps({run.name: found["span_losses"]["span"] for run, found in results.items()}))


def trained(run: Run, output: str, overrides: list[str]) -> dict[str, Any]:
    """Pre-trains one row, unless its results exist.

    Args:
      run: the run.
      output: directory of data, models and results.
      overrides: `key=value` overrides.

    Returns:
      The results of `ablation.trained`, and `windows`, the negative log-likelihoods, in nats, of
      one token of each held-out window given all others, and of its span in both readings.
    """
    path = _results_of(run, output)
    model_dir = os.path.join(output, "models", run.name)
    settings = [*run.settings, *overrides]
    result = kept(path, lambda: ablation.trained(run.row, run.seed, output, settings, model_dir))
    if "windows" not in result:
        from benchmarks.learning.span_likelihood import READINGS, choose_token

        data = os.path.join(output, "forward")
        token = ablation.spans_of(model_dir, data, choose_token)[READINGS[0]]
        losses = (token, *ablation.spans_of(model_dir, data).values())
        result["windows"] = {
            name: np.nansum(loss[~np.isnan(loss[:, 0])], axis=1).tolist()
            for name, loss in zip(_LIKELIHOODS, losses, strict=True)
        }
        write_json(path, result, indent=None)
    return result


def _results_of(run: Run, output: str) -> str:
    return os.path.join(output, "runs", f"{run.name}.json")


def best_of(results: Results) -> dict[str, Run]:
    """The run of each row with the best rate."""
    rows: dict[str, list[Run]] = {}
    for run in results:
        rows.setdefault(run.row, []).append(run)
    return {
        row: min(runs, key=lambda run: results[run]["span_losses"]["span"])
        for row, runs in rows.items()
    }


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
    from official.xlnet.extensions.text_baselines import text_baselines
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


def tables_of(results: Results, baselines: Baselines) -> dict[str, str]:
    """Formats the tables of the page as Markdown.

    `rivals` and `accuracy` have means and standard deviations over seeds. `differences` has what
    XLNet is ahead by, with a standard error that counts windows or examples, the same of both, and
    seeds; those of a bag of words are not the same, as only its accuracy is known.

    Args:
      results: the results of the runs of each row at its best rate.
      baselines: see `baselines_of`.
    """
    tasks = list(baselines)
    rivals = [["", "rate", "seeds", "training loss", *_LIKELIHOODS]]
    accuracies = [["", *tasks, _ALL]]
    rows = {}
    for row in dict.fromkeys(run.row for run in results):
        title, runs = ROWS[row][0], {run: got for run, got in results.items() if run.row == row}
        rows[row] = measures = measures_of(list(runs.values()), tasks)
        losses = mean_and_spread([_training_loss(run) for run in runs.values()], 2)
        shown = [mean_and_spread(measures[name].mean(axis=1)) for name in _LIKELIHOODS]
        rivals.append([title, f"{next(iter(runs)).rate:g}", str(len(runs)), losses, *shown])
        shown = [mean_and_spread(measures[name].mean(axis=1), 1) for name in (*tasks, _ALL)]
        accuracies.append([title, *shown])
    differences = [["XLNet against", *_LIKELIHOODS, f"{_ALL}, %"]]
    ours = rows.get(_OURS, {})
    for row in [row for row in rows if ours and row != _OURS]:
        ahead = [_verdict(rows[row][name] - ours[name]) for name in _LIKELIHOODS]
        differences.append([ROWS[row][0], *ahead, _verdict(ours[_ALL] - rows[row][_ALL], 1)])
    numbers = [measures[task].shape[1] for task in tasks]
    for name, title in _BASELINES.items():
        of_tasks = [100 * baselines[task][name] for task in tasks]
        mean = np.average(of_tasks, weights=numbers)
        accuracies.append([title, *(f"{share:.1f}" for share in (*of_tasks, mean))])
        if ours:
            error = np.sqrt(mean * (100 - mean) / sum(numbers))
            differences.append([title, "", "", "", _verdict(ours[_ALL] - mean, 1, error)])
    tables = {"rivals": rivals, "accuracy": accuracies, "differences": differences}
    return {name: markdown_table(lines) for name, lines in tables.items()}


def _verdict(values: np.ndarray, digits: int = 3, other_error: float = 0.0) -> str:
    """Mean and standard error of [S, E], of seeds and items; in words from two errors on."""
    mean, (seeds, items) = values.mean(), values.shape
    variance = other_error**2 + values.mean(axis=0).var(ddof=1) / items
    if seeds > 1:
        variance += values.mean(axis=1).var(ddof=1) / seeds
    error = np.sqrt(variance)
    word = "no difference" if abs(mean) <= 2 * error else "ahead" if mean > 0 else "behind"
    return f"{mean:+.{digits}f} ± {error:.{digits}f}, {word}"


def _training_loss(result: dict[str, Any]) -> float:
    """Mean over the last twentieth of the run."""
    losses = result["training_loss"]
    return float(np.mean(losses[-max(1, len(losses) // 20) :]))


if __name__ == "__main__":
    main()
