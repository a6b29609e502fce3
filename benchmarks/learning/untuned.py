"""Fine-tuning without settings against the best of a sweep, and a bag of words beside both.

    python -m benchmarks.learning.untuned --data=DIR --model=DIR --output=DIR --document=FILE

DIR has SET/{train,dev}.tsv for the data sets below. Every model (`--model` may be repeated, for
several sizes) is fine-tuned with what `xlnet finetune` chooses by itself, and again with each of
`--rates`; all other settings are the same. Finished runs are not repeated when the command is run
again.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness.command_line import flag, required
from benchmarks.harness.tables import fill_table, markdown_table
from benchmarks.learning.common import SET, kept, parse_experiment
from official import xlnet

SENTENCES = ("task.max_length=64", "task.num_buckets=2")
# The part of a text that is read; nothing here is tuned.
_DATA_SETS = {
    "sst2": SENTENCES,
    "cr": SENTENCES,
    "mr": SENTENCES,
    "mpqa": SENTENCES,
    "rte": ("task.max_length=128", "task.num_buckets=2"),
    "reviews": (
        "task.max_length=128",
        "task.num_buckets=1",
        "task.long_texts=windows",
        "task.max_windows=12",
        "task.window_stride=128",
    ),
}
_RATES = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3)
_KEPT = ("accuracy", "step", "steps", "train_examples", "baselines")

Result = dict[str, Any]


def main() -> None:
    flags = parse_experiment(
        __doc__,
        data=required("directory of the data sets"),
        model=required("pre-trained model", action="append"),
        sets=flag(None, "data sets", nargs="*", choices=list(_DATA_SETS)),
        rates=flag(None, "learning rates of the sweep", nargs="*", type=float),
        set=SET,
    )
    results = list(_results(flags))
    table = untuned_table(results)
    print(table, file=sys.stderr)
    if flags.document:
        measured = (entry for result in results for entry in result["measured"])
        fill_table(flags.document, "untuned", table, measured)
    print(json.dumps({f"{r['model']}/{r['set']}": r["accuracy"] for r in results if r["default"]}))


def _results(flags: argparse.Namespace) -> Iterator[Result]:
    """Results of all runs, those of finished ones from their files."""
    rates = (
        f"training.learning_rate={rate}"
        for rate in (_RATES if flags.rates is None else flags.rates)
    )
    settings = ["", *rates]
    for model, name, changes in itertools.product(flags.model, flags.sets or _DATA_SETS, settings):
        run = {"model": os.path.basename(model.rstrip("/")), "set": name, "changes": changes}
        parts = [run["model"], name, changes or "default", *flags.set]
        output = os.path.join(flags.output, "-".join(parts).replace(" ", "-"))
        run |= {"default": not changes}
        yield kept(f"{output}.json", functools.partial(_finetuned, flags, model, run, output))


def _finetuned(flags: argparse.Namespace, model: str, run: Result, output: str) -> Result:
    """Fine-tunes with the defaults, except the `key=value` of `changes`."""
    from official.xlnet.modeling.ops.keras import keras

    train, dev = (os.path.join(flags.data, run["set"], f"{part}.tsv") for part in ("train", "dev"))
    overrides = [*_DATA_SETS[run["set"]], *flags.set, *run["changes"].split()]
    keras.backend.clear_session()
    metrics = xlnet.finetune(model, train, dev, output, set=overrides)
    config = xlnet.load_config(output)
    return {
        **run,
        **{key: metrics[key] for key in _KEPT},
        "learning_rate": config.training.learning_rate,
        "parameters": config.model.num_parameters,
    }


def untuned_table(results: Sequence[Result]) -> str:
    """Markdown table: accuracy with the defaults, the best of the sweep, and the baselines."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result["model"], result["set"]), []).append(result)
    titles = ["model", "data set", "examples", "defaults"]
    rows = [[*titles, "best of the sweep", "bag of words", "majority"]]
    for (model, name), runs in groups.items():
        default = next(run for run in runs if run["default"])
        best = max(runs, key=lambda run: run["accuracy"])
        baselines = default["baselines"]
        others = [f"{100 * baselines[key]['accuracy']:.1f}" for key in ("bag_of_words", "majority")]
        size, number = default["parameters"] / 1e6, f"{default['train_examples']:,}"
        cells = [f"{model}, {size:.1f} M", name, number, _shown(default), _shown(best)]
        rows.append([*cells, *others])
    return markdown_table(rows) + "\n"


def _shown(run: Result) -> str:
    return f"{100 * run['accuracy']:.1f} ({run['learning_rate']:.0e})".replace("e-0", "e-")


if __name__ == "__main__":
    main()
