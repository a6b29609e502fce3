"""Ablation study at toy scale (table 6 of the paper), with several seeds per row.

    python -m benchmarks.learning.ablation --text=FILE --output=DIR --document=docs/ablation.md

Rows are the recipes in configs/ablation, with equal numbers of tokens and equal architectures;
rivals also have more steps, as many as take the compute of XLNet. Results of finished runs are
saved and not repeated; interrupted runs resume. Held-out documents are evaluated with each model's
own memory; `span_likelihood` describes how spans are scored. With --finetune=TRAIN,DEV, each model
is also fine-tuned on a labeled table.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import markdown_table
from benchmarks.harness.verdicts import (
    Difference,
    difference,
    mean_and_interval,
    over_runs,
    with_verdicts,
)
from benchmarks.learning.common import (
    MINUTES,
    SEEDS,
    SET,
    TEXT,
    accuracy,
    kept,
    make_data,
    model_with,
    parse_experiment,
    publish,
    train,
)
from official import xlnet
from official.xlnet.files.json_files import read_json, write_json

if TYPE_CHECKING:
    from benchmarks.learning.span_likelihood import Choice

CONFIGS = "configs/ablation"
# {recipe in `CONFIGS`: its title}.
ROWS = {
    "bert": "BERT",
    "bert_equal_compute": "BERT, equal compute",
    "dae_transformer_xl": "DAE + Transformer-XL",
    "dae_equal_compute": "DAE + Transformer-XL, equal compute",
    "dae_single_tokens": "DAE + Transformer-XL, single tokens",
    "dae_single_tokens_equal_compute": "DAE + Transformer-XL, single tokens, equal compute",
    "xlnet_k7": "XLNet, K = 7",
    "xlnet_k6": "XLNet, K = 6",
    "no_memory": "− memory",
    "no_span": "− span targets",
    "no_bidirectional": "− bidirectional data",
    "next_sentence": "+ next-sentence prediction",
}
_OURS = "xlnet_k6"
# {rival at equal steps: at equal compute}, and what XLNet is made of.
_RIVALS = {
    "dae_transformer_xl": "dae_equal_compute",
    "dae_single_tokens": "dae_single_tokens_equal_compute",
    "bert": "bert_equal_compute",
}
_PARTS = ("xlnet_k7", "no_memory", "no_span", "no_bidirectional", "next_sentence")
_METRICS = {"span": "span, left to right", "alone": "span, context alone"}
FINETUNING = (
    "learning_rate=1e-3",
    "task.epochs=2",
    "task.max_length=64",
    "checkpoint_steps=1000000",
)

Results = Mapping[str, Sequence[dict[str, Any]]]  # {row: result of each seed}.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        rows=flag(list(ROWS), "rows to train, by file name"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        finetune=flag(None, "TRAIN,DEV: labeled tables to fine-tune on"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    prepare_data(flags.text, flags.output, flags.set)
    for row in flags.rows:  # All seeds of a row share compiled kernels.
        for seed in range(flags.seeds):
            if time.monotonic() < deadline:
                run(row, seed, flags.output, flags.set, flags.finetune)
    runs = read_results(flags.output)
    if flags.document:
        publish(flags.document, "rows", runs, tables(runs))
    names = [f"{run['row']} {run['seed']}" for run in runs]
    losses = [[run[metric] for metric in _METRICS] for run in runs]
    print(json.dumps(dict(zip(names, losses, strict=True))))


def configuration(row: str, overrides: list[str], seed: int = 0):
    """Loads the recipe of a row.

    Args:
      row: name of a recipe in configs/ablation.
      overrides: `key=value` overrides.
      seed: value of `training.seed`.
    """
    return xlnet.XLNetConfig.load(recipe_of(row), [*overrides, f"training.seed={seed}"])


def recipe_of(row: str) -> str:
    """Path of a row's recipe."""
    return os.path.join(CONFIGS, row + ".yaml")


def prepare_data(text: str, output: str, overrides: list[str]) -> None:
    """Trains the vocabulary, and prepares data sets with and without reversed text."""
    both, forward = (configuration(row, overrides) for row in ("xlnet_k6", "no_bidirectional"))
    configs = {"both": both, "forward": forward}
    make_data(text.split(","), output, configs, both.model.vocab_size)


def run(row: str, seed: int, output: str, overrides: list[str], tables: str | None) -> None:
    """Trains and evaluates one row with one seed, unless its results exist.

    Args:
      row: name of the row.
      seed: random seed.
      output: directory of data, models and results.
      overrides: `key=value` overrides.
      tables: TRAIN,DEV tables to fine-tune on, or None.
    """
    path = os.path.join(output, "runs", f"{row}-{seed}.json")
    model_dir = os.path.join(output, "models", f"{row}-{seed}")
    result = kept(path, lambda: trained(row, seed, output, overrides, model_dir), recipe_of(row))
    if tables and "finetuned" not in result:
        settings = [*FINETUNING, f"training.seed={seed}"]
        output = f"{model_dir}-finetuned"
        result["finetuned"] = accuracy(model_dir, tables.split(","), output, settings)
        write_json(path, result, indent=None)


def trained(
    row: str, seed: int, output: str, overrides: list[str], model_dir: str
) -> dict[str, Any]:
    """Trains and evaluates one row with one seed.

    Args:
      row: name of the row.
      seed: random seed.
      output: directory of the data; see `prepare_data`.
      overrides: `key=value` overrides.
      model_dir: directory of the model.

    Returns:
      The results, with the losses of all steps, of held-out targets, and of held-out spans.
    """
    from benchmarks.learning.span_likelihood import READINGS
    from official.xlnet.modeling.ops.keras import keras
    from official.xlnet.runtime.history import read_history

    print(f"{row}, seed {seed}", file=sys.stderr, flush=True)
    keras.backend.clear_session()
    config = configuration(row, overrides, seed)
    data = os.path.join(output, "both" if config.data.bidirectional else "forward")
    cpu_seconds = train(config, data, model_dir)
    losses = spans_of(model_dir, os.path.join(output, "forward"))
    return {
        "row": row,
        "seed": seed,
        "steps": config.training.num_steps,
        "cpu_seconds": cpu_seconds,
        "training_loss": [line["loss"] for line in read_history(model_dir)],
        "heldout_loss": xlnet.evaluate(model_dir, data)["loss"],
        **mean_by_place(losses[READINGS[0]]),
        "alone": mean_by_place(losses[READINGS[1]])["span"],
    }


def spans_of(model_dir: str, data_dir: str, choose: Choice | None = None) -> dict[str, np.ndarray]:
    """Returns the `span_losses` of a model directory."""
    from benchmarks.learning.span_likelihood import span_losses
    from official.xlnet.data.pretraining_dataset import Records

    size = Records(data_dir).largest_batch("heldout", 64)
    return span_losses(model_with(model_dir, batch_size=size), data_dir, size, choose=choose)


def mean_by_place(losses: np.ndarray) -> dict[str, Any]:
    """Returns mean negative log-likelihoods per span, per token, and of first and later tokens.

    Args:
      losses: float64 [W, P], of one reading; see `span_losses`.
    """
    spans = losses[~np.isnan(losses[:, 0])]
    return {
        "spans": len(spans),
        "span": float(np.nansum(spans, axis=1).mean()),
        "token": float(np.nanmean(spans)),
        "first": float(spans[:, 0].mean()),
        "later": float(np.nanmean(spans[:, 1:])),
    }


def read_results(output: str) -> list[dict[str, Any]]:
    """Reads the results of finished runs, without the losses of each step."""
    directory = os.path.join(output, "runs")
    runs = (read_json(os.path.join(directory, name)) for name in sorted(os.listdir(directory)))
    return [{name: run[name] for name in run if name != "training_loss"} for run in runs]


def tables(runs: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Formats the rows, and how far "XLNet, K = 6" is ahead of rivals and without its parts."""
    results = {row: [run for run in runs if run["row"] == row] for row in ROWS}
    rivals = {
        ROWS[row]: itertools.product((row, equal_compute), ("span", "alone"))
        for row, equal_compute in _RIVALS.items()
    }
    parts = {ROWS[row]: [(row, "span")] for row in _PARTS}
    titles = [
        f"{equal}, {reading}"
        for equal in ("equal steps", "equal compute")
        for reading in ("left to right", "context alone")
    ]
    found = {
        "differences": _differences(results, titles, rivals),
        "parts": _differences(results, ["left to right"], parts),
    }
    return {"rows": _rows(results)} | {name: table for name, table in found.items() if table}


def _rows(results: Results) -> str:
    has_accuracy = any("finetuned" in run for runs in results.values() for run in runs)
    more = "CPU-seconds", *(["accuracy after fine-tuning"] if has_accuracy else [])
    lines = [["", "seeds", *_METRICS.values(), *more]]
    for row, title in ROWS.items():
        runs = results[row]
        cells = [mean_and_interval([run[name] for run in runs]) for name in _METRICS]
        seconds = [run["cpu_seconds"] for run in runs if run["cpu_seconds"]]
        cells.append(mean_and_interval(seconds, 0))
        if has_accuracy:
            cells.append(mean_and_interval([run.get("finetuned", np.nan) for run in runs]))
        if runs:
            lines.append([title, str(len(runs)), *cells])
    return markdown_table(lines)


def _differences(
    results: Results, titles: Sequence[str], lines: Mapping[str, Iterable[tuple[str, str]]]
) -> str:
    """What "XLNet, K = 6" is ahead of other rows by, in nats; empty if no other row has run.

    Differences are paired by seed, as runs with the same seed share targets and the initial values
    of common weights.

    Args:
      results: finished runs.
      titles: of the columns.
      lines: {title: (row, metric) of each column}.
    """
    found = [[_difference(results, *column) for column in columns] for columns in lines.values()]
    cells = iter(with_verdicts([*itertools.chain(*found)]))
    table = [[title, *itertools.islice(cells, len(titles))] for title in lines]
    compared = [line for line in table if any(line[1:])]
    return markdown_table([["XLNet, K = 6, against", *titles], *compared]) if compared else ""


def _difference(results: Results, row: str, metric: str) -> Difference | None:
    ours, theirs = ({run["seed"]: run[metric] for run in results[name]} for name in (_OURS, row))
    values = [theirs[seed] - ours[seed] for seed in ours if seed in theirs]
    return difference(np.mean(values), over_runs(values)) if values else None


if __name__ == "__main__":
    main()
