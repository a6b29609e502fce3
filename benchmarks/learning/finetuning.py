"""Effect of pre-training on fine-tuned accuracy, with several seeds and a linear baseline.

    python -m benchmarks.learning.finetuning --data=DIR --text FILE --output=DIR --document=FILE

DIR has sst2/{train,dev}.tsv and reviews/{train,dev}.tsv with the columns `label` and `text`;
`--text` adds plain text files. An encoder is pre-trained on the training texts of both and on
those files, never on dev. The same architecture is fine-tuned from the pre-trained and from random
weights. The baseline is a linear model on tf-idf of words and word pairs (bag of words) that reads
the same number of tokens. This is done for short inputs, and for reviews with windows and with
memory. With pre-trained weights, windows and memory are also compared with truncation, on all of
dev and on its texts of more than 512 tokens. Interrupted runs resume when the command is run again.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.learning.common import (
    kept,
    make_data,
    markdown_table,
    mean_and_range,
    parse_arguments,
    sampled_table,
)
from official import xlnet

_CONFIG = "configs/tiny.yaml"
_VOCAB_SIZE = 4000
_LONG = 512  # Tokens from which on a text is long.
_START = ("pretrained", "random")
_SENTENCES = ["task.max_length=64", "task.num_buckets=2"]
_REVIEWS = ["batch_size=16", "task.max_length=128", "task.num_buckets=1"]
# Name: directory, number of labeled training texts (None: all), settings.
_DATA_SETS: dict[str, tuple[str, int | None, list[str]]] = {
    "sst2": ("sst2", None, [*_SENTENCES, "batch_size=32", "task.epochs=3", "learning_rate=2e-3"]),
    "sst2_100": (
        "sst2",
        100,
        [*_SENTENCES, "batch_size=16", "task.epochs=40", "learning_rate=3e-4"],
    ),
    "reviews": ("reviews", None, [*_REVIEWS, "task.epochs=3", "learning_rate=1e-3"]),
}
_WINDOWS = ["task.max_windows=12", "task.window_stride=128"]
_MEMORY = ["task.long_texts=memory", "model.mem_len=128", *_WINDOWS]
_LONG_TEXTS: dict[str, list[str]] = {
    "truncate": [],
    "windows": ["task.long_texts=windows", *_WINDOWS],
    "memory": [*_MEMORY, "task.pooled_segments=all"],
    "memory_last": [*_MEMORY, "task.pooled_segments=last"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="directory with sst2/ and reviews/")
    parser.add_argument(
        "--text", nargs="*", default=[], help="additional text files for pre-training"
    )
    parser.add_argument("--pretrain_steps", type=int, default=12000)
    arguments = parse_arguments(parser, "seeds")

    files = {name: _files(arguments, name) for name in _DATA_SETS}
    model = _pretrain(arguments)

    def runs(name: str, start: str, way: str) -> list[dict[str, float]]:
        return _finetune_seeds(arguments, model, files, name, start, _settings(name, way), way)

    rows = {name: (name, "truncate") for name in _DATA_SETS}
    rows |= {f"reviews, {way}": ("reviews", way) for way in ("windows", "memory")}
    results: dict[str, Any] = {
        row: {
            "bag_of_words": _bag_of_words(model, files[name], _settings(name, way)),
            **{start: runs(name, start, way) for start in _START},
        }
        for row, (name, way) in rows.items()
    }
    ways = {way: runs("reviews", "pretrained", way) for way in _LONG_TEXTS}
    table = _table(results, ways, arguments)
    print(table, file=sys.stderr)
    if arguments.document:
        fill_table(arguments.document, "pretraining", table)
    print(
        json.dumps(
            {
                f"{name}_{start}": _mean(results[name][start], "accuracy")
                for name in results
                for start in _START
            }
        )
    )


def _settings(name: str, way: str) -> list[str]:
    return [*_DATA_SETS[name][-1], *_LONG_TEXTS[way]]


def _files(arguments, name: str) -> tuple[str, str]:
    """Returns the training and dev tables; the former is sampled if labels are limited."""
    directory, num_labels, _ = _DATA_SETS[name]
    train, dev = (os.path.join(arguments.data, directory, f"{x}.tsv") for x in ("train", "dev"))
    if num_labels is None:
        return train, dev
    return sampled_table(train, num_labels, os.path.join(arguments.output, f"{name}.tsv")), dev


def _pretrain(arguments) -> str:
    """Pre-trains an encoder on the training texts and returns its model directory."""
    text = os.path.join(arguments.output, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        for name in ("sst2", "reviews"):
            file.writelines(f"{row}\n\n" for _, row in _rows(_files(arguments, name)[0]))
    data, model = (os.path.join(arguments.output, name) for name in ("data", "model"))
    steps = arguments.pretrain_steps
    overrides = [f"num_steps={steps}", f"warmup_steps={steps // 10}"]
    config = xlnet.XLNetConfig.load(_CONFIG, overrides)
    make_data([text, *arguments.text], arguments.output, {"data": config}, _VOCAB_SIZE)
    xlnet.pretrain(config, data, model)
    return model


def _finetune_seeds(arguments, model, files, name, start, settings, way) -> list[dict[str, float]]:
    """Returns the metrics of a run for each seed; those of finished runs are read from files."""
    runs = []
    for seed in range(arguments.seeds):
        output = os.path.join(arguments.output, f"{name}_{start}_{way}_{seed}")
        settings_of_run = [*settings, f"training.seed={seed}"]
        run = functools.partial(_finetune, model, files[name], output, start, settings_of_run)
        runs.append(kept(os.path.join(output, "accuracy.json"), run))
        print(f"{output}: {runs[-1]}", file=sys.stderr)
    return runs


def _finetune(model, files, output, start, settings) -> dict[str, float]:
    """Fine-tunes once and returns the accuracy on dev and on its long texts."""
    from data_prep.tasks.task_data import read_task
    from official.xlnet.api.finetuning import task_configuration
    from official.xlnet.tasks.reports import PREDICTIONS_FILE
    from official.xlnet.training.finetuning import finetune

    overrides = [
        "task.summary=mean",  # CLS is not a good summary in a network this small.
        *("num_steps=1000", "warmup_steps=100", "jit_compile=true", "checkpoint_steps=100"),
        *settings,
    ]
    config = task_configuration("classification", None, overrides, model)
    (train, _), (dev, _) = (read_task(path, config.task) for path in files)
    given = {"init_from": model}
    if start == "random":
        given = {"vocab": os.path.join(model, "spiece.model")}
    metrics = finetune(config, train, dev, output, **given)
    tokenizer = xlnet.load_tokenizer(model)
    with open(os.path.join(output, PREDICTIONS_FILE), encoding="utf-8") as file:
        predicted = [json.loads(line)["label"] for line in file]
    long = [
        true == label
        for (true, text), label in zip(_rows(files[1]), predicted, strict=True)
        if len(tokenizer.encode(text)) > _LONG
    ]
    accuracy_long = float(np.mean(long)) if long else float("nan")
    return {"accuracy": metrics["accuracy"], "accuracy_long": accuracy_long, "long": len(long)}


def _bag_of_words(model, files: tuple[str, str], settings: list[str]) -> float:
    """Returns the accuracy of logistic regression on tf-idf of words and word pairs.

    Texts are truncated to the length that the network reads.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from official.xlnet.api.finetuning import task_configuration

    task = task_configuration("classification", None, settings, model).task
    limit = task.max_length * (1 if task.long_texts == "truncate" else task.max_windows)
    tokenizer = xlnet.load_tokenizer(model)

    def read(text: str) -> str:
        _, offsets = tokenizer.encode_with_offsets(text)
        return text[: offsets[limit - 1][1]] if len(offsets) > limit else text

    linear = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+"),
        LogisticRegression(C=10.0, max_iter=1000),
    )
    (labels, texts), (dev_labels, dev_texts) = (zip(*_rows(path), strict=True) for path in files)
    linear.fit([read(text) for text in texts], labels)
    return float(linear.score([read(text) for text in dev_texts], dev_labels))


def _rows(path: str) -> list[tuple[str, ...]]:
    with open(path, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file][1:]


def _mean(runs: list[dict[str, float]], metric: str) -> float:
    return float(np.mean([run[metric] for run in runs]))


def _shown(runs: list[dict[str, float]], metric: str = "accuracy") -> str:
    """Formats mean, minimum and maximum in percent."""
    return mean_and_range([100 * run[metric] for run in runs], digits=1)


def _table(results: dict[str, Any], ways: dict[str, list[dict[str, float]]], arguments) -> str:
    rows = [
        [name, *(_shown(runs[start]) for start in _START), f"{100 * runs['bag_of_words']:.1f}"]
        for name, runs in results.items()
    ]
    long_rows = [[way, _shown(runs), _shown(runs, "accuracy_long")] for way, runs in ways.items()]
    titles = ["", "all of dev", f"more than {_LONG} tokens"]
    return f"""\
Accuracy on dev in percent: mean over {arguments.seeds} seeds and, in parentheses, the range.
The network is that of `configs/tiny.yaml`, pre-trained for {arguments.pretrain_steps} steps.
Both are fine-tuned alike: 3 epochs with a learning rate of 2e-3 (sst2) or 1e-3 (reviews), or 40
epochs with 3e-4 on only 100 labeled sentences of sst2 (sst2_100). The best checkpoint is selected
from evaluations every 100 steps and at the end. Reviews are truncated to 128 tokens, or processed
up to 1,536 tokens as the row says. The bag-of-words model reads as many tokens as the network.

{markdown_table([["", "pre-trained", "random weights", "bag of words"], *rows])}

The reviews, {ways["truncate"][0]["long"]} of which have more than {_LONG} tokens, with pre-trained
weights and 128 tokens (truncate), or up to 1,536 tokens in windows whose summaries are averaged
(windows), or from left to right with memory: the mean of all segments' summaries (memory) or the
last segment alone (memory_last):

{markdown_table([titles, *long_rows])}
"""


if __name__ == "__main__":
    main()
