"""Ablation study at toy scale (table 6 of the paper), with several seeds per row.

    python -m benchmarks.learning.ablation --text=FILE --output=DIR --document=docs/ablation.md

Rows are the recipes in configs/ablation, with equal numbers of tokens and equal architectures.
Results of finished runs are saved in DIR/runs and not repeated; interrupted runs resume. Held-out
documents are evaluated with each model's own memory; `span_likelihood` describes how spans are
scored. With --finetune=TRAIN,DEV, each model is also fine-tuned on a labeled table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import fill_table, markdown_table, mean_and_spread
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
)
from official import xlnet
from official.xlnet.files.json_files import read_json, write_json

if TYPE_CHECKING:
    from benchmarks.learning.span_likelihood import Choice

CONFIGS = "configs/ablation"
# {recipe in `CONFIGS`: its title}.
ROWS = {
    "bert": "BERT",
    "dae_transformer_xl": "DAE + Transformer-XL",
    "dae_equal_compute": "DAE + Transformer-XL, equal compute",
    "dae_single_tokens": "DAE + Transformer-XL, single tokens",
    "xlnet_k7": "XLNet, K = 7",
    "xlnet_k6": "XLNet, K = 6",
    "no_memory": "− memory",
    "no_span": "− span targets",
    "no_bidirectional": "− bidirectional data",
    "next_sentence": "+ next-sentence prediction",
}
# Rows that are compared with "XLNet, K = 6", and the metric.
_COMPARED = (
    ("dae_transformer_xl", "span", "permutation vs. denoising of the same spans"),
    ("dae_transformer_xl", "alone", "the same, context alone"),
    ("dae_equal_compute", "span", "the same at equal compute, left to right"),
    ("dae_single_tokens", "span", "permutation vs. denoising of single tokens"),
    ("dae_single_tokens", "alone", "the same, context alone"),
    ("bert", "span", "permutation vs. BERT"),
    ("no_memory", "heldout", "memory vs. none, the model's own targets"),
    ("no_memory", "span", "memory vs. none, spans"),
    ("xlnet_k7", "span", "K = 6 vs. K = 7"),
    ("no_span", "span", "span targets vs. single tokens"),
    ("no_bidirectional", "span", "bidirectional vs. forward text"),
    ("next_sentence", "span", "without vs. with next-sentence prediction"),
)
_METRICS = {
    **{"span": "span, left to right", "alone": "span, context alone", "first": "first token"},
    **{"later": "later tokens", "heldout": "own held-out loss"},
}
_FINETUNING = (
    *("learning_rate=1e-3", "task.epochs=2", "task.max_length=64", "checkpoint_steps=1000000"),
)

Results = dict[str, list[dict[str, Any]]]  # {row: result of each seed}.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        text=TEXT,
        rows=flag(list(ROWS), "rows to train, by file name"),
        seeds=SEEDS,
        minutes=MINUTES,
        set=SET,
        finetune=flag(None, "TRAIN,DEV: labeled tables to fine-tune on"),
        table=flag(None, "write only differences, to the table of this name"),
    )
    deadline = time.monotonic() + 60 * flags.minutes
    prepare_data(flags.text, flags.output, flags.set)
    for row in flags.rows:  # All seeds of a row share compiled kernels.
        for seed in range(flags.seeds):
            if time.monotonic() < deadline:
                run(row, seed, flags.output, flags.set, flags.finetune)
    results = read_results(flags.output)
    if flags.document:
        write(results, flags.document, flags.table)
    print(json.dumps({row: len(runs) for row, runs in results.items()}))


def configuration(row: str, overrides: list[str], seed: int = 0):
    """Loads the recipe of a row.

    Args:
      row: name of a recipe in configs/ablation.
      overrides: `key=value` overrides.
      seed: value of `training.seed`.
    """
    path = os.path.join(CONFIGS, row + ".yaml")
    return xlnet.XLNetConfig.load(path, [*overrides, f"training.seed={seed}"])


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
    result = kept(path, lambda: trained(row, seed, output, overrides, model_dir))
    if tables and "finetuned" not in result:
        settings = [*_FINETUNING, f"training.seed={seed}"]
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
    import tf_keras

    from benchmarks.learning.span_likelihood import READINGS
    from official.xlnet.runtime.history import read_history

    print(f"{row}, seed {seed}", file=sys.stderr, flush=True)
    tf_keras.backend.clear_session()
    config = configuration(row, overrides, seed)
    data = os.path.join(output, "both" if config.data.bidirectional else "forward")
    metrics = xlnet.pretrain(config, data, model_dir)
    losses = spans_of(model_dir, os.path.join(output, "forward"))
    return {
        "row": row,
        "seed": seed,
        "steps": metrics["step"],
        "training_loss": [line["loss"] for line in read_history(model_dir)],
        "heldout_loss": xlnet.evaluate(model_dir, data)["loss"],
        "span_losses": mean_by_place(losses[READINGS[0]]),
        "span_alone": mean_by_place(losses[READINGS[1]])["span"],
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


def read_results(output: str) -> Results:
    """Reads the results of finished runs."""
    results: Results = {row: [] for row in ROWS}
    directory = os.path.join(output, "runs")
    for name in sorted(os.listdir(directory)):
        result = read_json(os.path.join(directory, name))
        results[result["row"]].append(result)
    return results


def write(results: Results, document: str, table: str | None = None) -> None:
    """Writes the tables of a Markdown document.

    Args:
      results: finished runs by row.
      document: path of the Markdown file.
      table: if given, only this table is written, with the differences.
    """
    recipes = [f"{CONFIGS}/{row}.yaml" for row, runs in results.items() if runs]
    if not table:
        fill_table(document, "rows", _rows(results), recipes)
    fill_table(document, table or "differences", _differences(results), recipes)


def _metric(run: dict[str, Any], name: str) -> float:
    of_run = {"heldout": "heldout_loss", "alone": "span_alone"}
    return run[of_run[name]] if name in of_run else run["span_losses"][name]


def _rows(results: Results) -> str:
    has_accuracy = any("finetuned" in run for runs in results.values() for run in runs)
    more = ["accuracy after fine-tuning"] if has_accuracy else []
    lines = [["", "seeds", *_METRICS.values(), *more]]
    for row, title in ROWS.items():
        runs = results[row]
        cells = [mean_and_spread([_metric(run, name) for run in runs]) for name in _METRICS]
        if has_accuracy:
            cells.append(mean_and_spread([run.get("finetuned", np.nan) for run in runs]))
        if runs:
            lines.append([title, str(len(runs)), *cells])
    return markdown_table(lines)


def _differences(results: Results) -> str:
    """What other rows have more than "XLNet, K = 6".

    A difference is significant if it exceeds two standard errors over seeds. Differences are paired
    by seed, as runs with the same seed share targets and the initial values of common weights.
    """
    lines = [["", "nats", "standard error", "significant"]]
    for other, name, title in _COMPARED:
        ours, theirs = (
            {run["seed"]: _metric(run, name) for run in results[row]} for row in ("xlnet_k6", other)
        )
        values = np.array([theirs[seed] - ours[seed] for seed in ours if seed in theirs])
        if len(values) >= 2:
            mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
            verdict = "no" if abs(mean) <= 2 * error else ("better" if mean > 0 else "worse")
            lines.append([title, f"{mean:+.3f}", f"{error:.3f}", verdict])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
