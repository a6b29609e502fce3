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
from typing import Any

import numpy as np

from benchmarks.learning.ablation_rows import ROWS
from official.xlnet.cli import set_environment_defaults

CONFIGS = "configs/ablation"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", required=True, help="text files, one paragraph per line")
    parser.add_argument("--output", required=True, help="directory for data, models and results")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds of each row")
    parser.add_argument("--rows", default=",".join(ROWS), help="rows to train, by file name")
    parser.add_argument("--minutes", type=float, help="time after which no further run starts")
    parser.add_argument("--finetune", help="TRAIN,DEV: labeled tables to fine-tune on")
    parser.add_argument("--document", help="Markdown file to write table and chart to")
    parser.add_argument("--table", help="write only differences, to the table of this name")
    parser.add_argument(
        "--set", action="append", default=[], help="key=value: overrides a key in all rows"
    )
    arguments = parser.parse_args()
    set_environment_defaults()
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
    from official.xlnet.configs.experiment import XLNetConfig

    path = os.path.join(CONFIGS, row + ".yaml")
    return XLNetConfig.load(path, [*overrides, f"training.seed={seed}"])


def prepare_data(text: str, output: str, overrides: list[str]) -> None:
    """Trains the vocabulary, and prepares data sets with and without reversed text."""
    from data_prep.corpus.vocabulary import train_vocabulary
    from data_prep.pipelines.prepare import prepare

    inputs, vocab = text.split(","), os.path.join(output, "vocab")
    config = configuration("xlnet_k6", overrides)
    if not os.path.exists(os.path.join(vocab, "spiece.model")):
        train_vocabulary(inputs, vocab, config.model.vocab_size)
    for name, row in (("both", "xlnet_k6"), ("forward", "no_bidirectional")):
        prepare(inputs, vocab, configuration(row, overrides), os.path.join(output, name))


def run(row: str, seed: int, output: str, overrides: list[str], tables: str | None) -> None:
    """Trains and evaluates one row with one seed, unless its results exist.

    Args:
      row: name of the row.
      seed: random seed.
      output: directory of data, models and results.
      overrides: `key=value` overrides.
      tables: TRAIN,DEV tables to fine-tune on, or None.
    """
    import tf_keras

    from official.xlnet.runtime.history import read_history
    from official.xlnet.training.evaluation import evaluate
    from official.xlnet.training.pretraining import pretrain

    path = os.path.join(output, "runs", f"{row}-{seed}.json")
    result: dict[str, Any] = {"row": row, "seed": seed}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
    model_dir = os.path.join(output, "models", f"{row}-{seed}")
    config = configuration(row, overrides, seed)
    if "span_losses" not in result:
        print(f"{row}, seed {seed}", file=sys.stderr, flush=True)
        tf_keras.backend.clear_session()
        data = os.path.join(output, "both" if config.data.bidirectional else "forward")
        start = time.monotonic()
        metrics = pretrain(config, data, model_dir)
        seconds = time.monotonic() - start
        tokens = config.training.batch_size * config.data.seq_len
        speed = metrics["tokens_per_second"]
        losses = spans_of(model_dir, os.path.join(output, "forward"))
        result |= {
            "steps": metrics["step"],
            "seconds": seconds,
            # Unknown if an earlier process trained the model to its end.
            "seconds_per_step": tokens / speed if speed else None,
            "training_loss": [line["loss"] for line in read_history(model_dir)],
            "heldout_loss": evaluate(model_dir, data)["loss"],
            "span_losses": mean_by_place(losses),
        }
        _save(path, result)
    if tables and "finetuned" not in result:
        result["finetuned"] = finetuned(model_dir, tables.split(","), seed)
        _save(path, result)


def spans_of(model_dir: str, data_dir: str) -> np.ndarray:
    """Returns the `span_losses` of a model directory."""
    import dataclasses

    from benchmarks.learning.span_likelihood import span_losses
    from official.xlnet.checkpoints.model_directory import load_pretrainer
    from official.xlnet.configs.experiment import XLNetConfig
    from official.xlnet.data.pretraining_dataset import Records

    config = XLNetConfig.load(model_dir)
    size = Records(data_dir).largest_batch("heldout", 64)
    config.training = dataclasses.replace(config.training, batch_size=size)
    return span_losses(load_pretrainer(model_dir, config), data_dir, size)


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


def finetuned(model_dir: str, tables: list[str], seed: int) -> float:
    """Fine-tunes a classifier from a model and returns its accuracy on dev."""
    from data_prep.tasks.task_data import read_task
    from official.xlnet.api.finetuning import task_configuration
    from official.xlnet.training.finetuning import finetune

    overrides = [
        *("learning_rate=1e-3", "task.epochs=2", "task.max_length=64"),
        *("checkpoint_steps=1000000", f"training.seed={seed}"),
    ]
    config = task_configuration("classification", None, overrides, model_dir)
    train, dev = (read_task(table, config.task)[0] for table in tables)
    output = model_dir.rstrip("/") + "-finetuned"
    return float(finetune(config, train, dev, output, init_from=model_dir)["accuracy"])


def read_results(output: str) -> dict[str, list[dict[str, Any]]]:
    """Reads the results of finished runs, {row: [result of each seed]}."""
    results: dict[str, list[dict[str, Any]]] = {row: [] for row in ROWS}
    directory = os.path.join(output, "runs")
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            result = json.load(file)
        results[result["row"]].append(result)
    return results


def _save(path: str, result: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.replace(path + ".tmp", path)


if __name__ == "__main__":
    main()
