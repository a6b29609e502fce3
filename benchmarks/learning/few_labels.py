"""Fine-tuning with few labels: a pre-trained model, the same with random weights, a bag of words.

    python -m benchmarks.learning.few_labels --data=DIR --model=DIR --output=DIR --document=FILE

DIR has SET/{train,dev}.tsv. For each number of `--examples` and each seed, that many lines of the
training table are drawn; all three learn from the same ones. Settings are those that `xlnet
finetune` chooses by itself. Finished runs are not repeated when the command is run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.command_line import flag, required
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.harness.verdicts import mean_and_interval
from benchmarks.learning.common import SEEDS, SET, kept, parse_experiment
from benchmarks.learning.untuned import SENTENCES
from official import xlnet
from official.xlnet.tokenization.special_tokens import VOCAB_FILE

_ROWS = ("pre-trained", "random weights", "bag of words")

Run = tuple[str, int, str, int]  # Data set, number of examples, row, seed.


def main() -> None:
    flags = parse_experiment(
        __doc__,
        data=required("directory of the data sets"),
        model=required("pre-trained model"),
        sets=flag(["sst2", "cr"], "data sets"),
        examples=flag(["100", "1000"], "numbers of training examples; all where there are fewer"),
        seeds=SEEDS,
        set=SET,
    )
    models = {"pre-trained": flags.model, "random weights": _without_training(flags)}
    accuracies: dict[Run, float] = {}
    measured: set[str] = set()
    draws = itertools.product(flags.sets, map(int, flags.examples), range(flags.seeds))
    for (name, number, seed), (row, model_dir) in itertools.product(draws, models.items()):
        number = min(number, len(_table(flags, name)) - 1)
        found = _finetuned(flags, model_dir, name, number, seed)
        accuracies[name, number, row, seed] = found["accuracy"]
        accuracies[name, number, "bag of words", seed] = found["bag_of_words"]
        measured |= {*found["measured"]}
    table = table_of(accuracies)
    print(table, file=sys.stderr)
    if flags.document:
        fill_table(flags.document, "few_labels", table, measured)
    print(json.dumps({" ".join(map(str, run)): share for run, share in accuracies.items()}))


def _without_training(flags: argparse.Namespace) -> str:
    """Directory of a model with the network and vocabulary of `--model`, and random weights."""
    from official.xlnet.modeling.ops.keras import keras

    model_dir = os.path.join(flags.output, f"{_name(flags.model)}-random")
    if not os.path.exists(model_dir):
        keras.utils.set_random_seed(0)
        model = xlnet.XLNetPretrainer(xlnet.load_config(flags.model))
        xlnet.save_pretrained(model, model_dir, os.path.join(flags.model, VOCAB_FILE))
    return model_dir


def _finetuned(
    flags: argparse.Namespace, model_dir: str, name: str, number: int, seed: int
) -> dict[str, Any]:
    """Fine-tunes a model with `number` examples, unless its result is on file."""
    run_name = "-".join([_name(model_dir), name, str(number), str(seed), *flags.set])
    output = os.path.join(flags.output, run_name)

    def run() -> dict[str, float]:
        from official.xlnet.modeling.ops.keras import keras

        train = drawn(_table(flags, name), number, seed)
        path = pathlib.Path(flags.output, f"{name}-{number}-{seed}.tsv")
        path.write_text("\n".join(train) + "\n", encoding="utf-8", newline="\n")
        overrides = [*SENTENCES, f"training.seed={seed}", *flags.set]
        keras.backend.clear_session()
        dev = os.path.join(flags.data, name, "dev.tsv")
        metrics = xlnet.finetune(model_dir, str(path), dev, output, set=overrides)
        bag_of_words = metrics["baselines"]["bag_of_words"]["accuracy"]
        return {"accuracy": metrics["accuracy"], "bag_of_words": bag_of_words}

    return kept(f"{output}.json", run)


def _table(flags: argparse.Namespace, name: str) -> list[str]:
    """The lines of a training table."""
    path = pathlib.Path(flags.data, name, "train.tsv")
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().rstrip("\n").split("\n")


def _name(model_dir: str) -> str:
    return os.path.basename(model_dir.rstrip("/"))


def drawn(lines: Sequence[str], number: int, seed: int) -> list[str]:
    """Draws `number` lines of a table without repetition.

    Args:
      lines: the lines of a table, the first of which has the names of columns.
      number: number of lines to draw beside the first.
      seed: of the draw.
    """
    head, *rows = lines
    return [head, *random.Random(seed).sample(rows, number)]


def table_of(accuracies: Mapping[Run, float]) -> str:
    """Returns a Markdown table of accuracies in percent, mean over seeds and half of its interval.

    Args:
      accuracies: {(data set, number of examples, row, seed): share of correct answers}.
    """
    lines = [["data set", "examples", *_ROWS]]
    for name, number in dict.fromkeys(run[:2] for run in accuracies):
        shares = [
            [100 * share for run, share in accuracies.items() if run[:3] == (name, number, row)]
            for row in _ROWS
        ]
        lines.append([name, f"{number:,}", *(mean_and_interval(values, 1) for values in shares)])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
