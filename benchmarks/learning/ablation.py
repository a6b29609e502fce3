"""Ablation study at toy scale (table 6 of the paper), with several seeds per row.

    python -m benchmarks.learning.ablation --text=FILE --output=DIR --document=docs/ablation.md

Rows are the recipes in configs/ablation, with equal numbers of tokens and equal architectures.
Results of finished runs are saved in DIR/runs and not repeated; interrupted runs resume. Held-out
documents are evaluated with each model's own memory; `span_likelihood` describes how spans are
scored. With --finetune=TRAIN,DEV, each model is also fine-tuned on a labeled table.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.learning.ablation_rows import ROWS
from benchmarks.learning.common import accuracy, kept, make_data, model_with, parse_arguments
from official import xlnet
from official.xlnet.files.json_files import read_json, write_json

if TYPE_CHECKING:
    from benchmarks.learning.span_likelihood import Choice

CONFIGS = "configs/ablation"
_FINETUNING = (
    *("learning_rate=1e-3", "task.epochs=2", "task.max_length=64", "checkpoint_steps=1000000"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="rows to train, by file name")
    parser.add_argument("--finetune", help="TRAIN,DEV: labeled tables to fine-tune on")
    parser.add_argument("--table", help="write only differences, to the table of this name")
    arguments = parse_arguments(parser, "text", "seeds", "minutes", "set")
    deadline = time.monotonic() + 60 * (arguments.minutes or np.inf)
    prepare_data(arguments.text, arguments.output, arguments.set)
    for row in arguments.rows.split(","):  # All seeds of a row share compiled kernels.
        for seed in range(arguments.seeds):
            if time.monotonic() < deadline:
                run(row, seed, arguments.output, arguments.set, arguments.finetune)
    results = read_results(arguments.output)
    if arguments.document:
        from benchmarks.learning import ablation_report

        ablation_report.write(results, arguments.document, arguments.table)
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

    from official.xlnet.runtime.history import read_history

    print(f"{row}, seed {seed}", file=sys.stderr, flush=True)
    tf_keras.backend.clear_session()
    config = configuration(row, overrides, seed)
    data = os.path.join(output, "both" if config.data.bidirectional else "forward")
    start = time.monotonic()
    metrics = xlnet.pretrain(config, data, model_dir)
    seconds = time.monotonic() - start
    tokens = config.training.batch_size * config.data.seq_len
    speed = metrics["tokens_per_second"]
    losses = spans_of(model_dir, os.path.join(output, "forward"))
    return {
        "row": row,
        "seed": seed,
        "steps": metrics["step"],
        "seconds": seconds,
        # Unknown if an earlier process trained the model to its end.
        "seconds_per_step": tokens / speed if speed else None,
        "training_loss": [line["loss"] for line in read_history(model_dir)],
        "heldout_loss": xlnet.evaluate(model_dir, data)["loss"],
        "span_losses": mean_by_place(losses),
    }


def spans_of(model_dir: str, data_dir: str, choose: Choice | None = None) -> np.ndarray:
    """Returns the `span_losses` of a model directory."""
    from benchmarks.learning.span_likelihood import span_losses
    from official.xlnet.data.pretraining_dataset import Records

    size = Records(data_dir).largest_batch("heldout", 64)
    return span_losses(model_with(model_dir, batch_size=size), data_dir, size, choose=choose)


def mean_by_place(losses: np.ndarray) -> dict[str, Any]:
    """Returns mean negative log-likelihoods per span, per token, and of first and later tokens.

    Args:
      losses: result of `span_losses`.
    """
    spans = losses[~np.isnan(losses[:, 0])]
    return {
        "spans": len(spans),
        "span": float(np.nansum(spans, axis=1).mean()),
        "token": float(np.nanmean(spans)),
        "first": float(spans[:, 0].mean()),
        "later": float(np.nanmean(spans[:, 1:])),
    }


def read_results(output: str) -> dict[str, list[dict[str, Any]]]:
    """Reads the results of finished runs, {row: [result of each seed]}."""
    results: dict[str, list[dict[str, Any]]] = {row: [] for row in ROWS}
    directory = os.path.join(output, "runs")
    for name in sorted(os.listdir(directory)):
        result = read_json(os.path.join(directory, name))
        results[result["row"]].append(result)
    return results


if __name__ == "__main__":
    main()
