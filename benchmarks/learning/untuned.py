"""Fine-tuning without settings against the best of a sweep, and a bag of words beside both.

    python -m benchmarks.learning.untuned --data=DIR --model=DIR --output=DIR --document=FILE

DIR has SET/{train,dev}.tsv for the data sets below. Every model (`--model` may be repeated, for
several sizes) is fine-tuned with what `xlnet finetune` chooses by itself, and again with each of
`--rates`; all other settings are the same. `--trial="KEY=VALUE ..."`, which may be repeated, tries
other settings on top of the defaults, in a table of its own. Finished runs are not repeated when
the command is run again. `--max_examples` takes a random sample of the training data, for a quick
look.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.harness.document import fill_table
from benchmarks.learning.common import markdown_table, parse_arguments, sampled_table
from official import xlnet

_SENTENCES = ("task.max_length=64", "task.num_buckets=2")
# The part of a text that is read; nothing here is tuned.
_DATA_SETS = {
    "sst2": _SENTENCES,
    "cr": _SENTENCES,
    "mr": _SENTENCES,
    "mpqa": _SENTENCES,
    "rte": ("task.max_length=128", "task.num_buckets=2"),
    "reviews": (
        *("task.max_length=128", "task.num_buckets=1", "task.long_texts=windows"),
        *("task.max_windows=12", "task.window_stride=128"),
    ),
}
_KEPT = ("accuracy", "step", "steps", "train_examples", "baselines")

Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", required=True, help="directory of the data sets")
    parser.add_argument("--model", required=True, action="append", help="pre-trained model")
    parser.add_argument("--sets", nargs="*", default=list(_DATA_SETS), choices=list(_DATA_SETS))
    parser.add_argument("--rates", nargs="*", type=float, default=[1e-5, 1e-4, 3e-4, 1e-3, 3e-3])
    parser.add_argument("--trial", action="append", default=[], help="settings to try, by blanks")
    parser.add_argument("--max_examples", type=int, default=0, help="0: all training examples")
    arguments = parse_arguments(parser)
    results = list(_results(arguments))
    table, trials = untuned_table(results), trials_table(results)
    print(table, trials, sep="\n", file=sys.stderr)
    if arguments.document:
        fill_table(arguments.document, "untuned", table)
        if arguments.trial:
            fill_table(arguments.document, "trials", trials)
    print(json.dumps({f"{r['model']}/{r['set']}": r["accuracy"] for r in results if r["default"]}))


def _results(arguments) -> Iterable[Result]:
    """Results of all runs, those of finished ones from the file."""
    path = os.path.join(arguments.output, "results.jsonl")
    finished = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            finished = {_key(result): result for result in map(json.loads, file)}
    for model in arguments.model:
        for name in arguments.sets:
            rates = [f"training.learning_rate={rate}" for rate in arguments.rates]
            for changes in ("", *rates, *arguments.trial):
                run = {"model": os.path.basename(model.rstrip("/")), "set": name}
                run |= {"changes": changes, "max_examples": arguments.max_examples}
                if _key(run) not in finished:
                    result = {**run, **_finetune(arguments, model, name, changes)}
                    result["is_trial"] = changes in arguments.trial
                    with open(path, "a", encoding="utf-8") as file:
                        file.write(json.dumps(result) + "\n")
                    finished[_key(result)] = result
                yield finished[_key(run)]


def _key(run: Result) -> tuple:
    return tuple(run[key] for key in ("model", "set", "changes", "max_examples"))


def _finetune(arguments, model: str, name: str, changes: str) -> Result:
    """Fine-tunes with the defaults, but for the `key=value` of `changes`."""
    import tf_keras

    folder = f"{os.path.basename(model.rstrip('/'))}-{name}-{changes or 'default'}"
    output = os.path.join(arguments.output, folder.replace(" ", "-"))
    overrides = [*_DATA_SETS[name], *changes.split()]
    tf_keras.backend.clear_session()
    metrics = xlnet.finetune(
        model,
        _sampled(arguments, name),
        os.path.join(arguments.data, name, "dev.tsv"),
        output,
        overrides=overrides,
    )
    config = xlnet.load_config(output)
    return {
        **{key: metrics[key] for key in _KEPT},
        "default": not changes,
        "learning_rate": config.training.learning_rate,
        "parameters": config.model.num_parameters,
    }


def _sampled(arguments, name: str) -> str:
    """Path of the training data, or of a sample of them."""
    path = os.path.join(arguments.data, name, "train.tsv")
    if not arguments.max_examples:
        return path
    part = os.path.join(arguments.output, f"{name}-{arguments.max_examples}.tsv")
    return sampled_table(path, arguments.max_examples, part)


def untuned_table(results: Sequence[Result]) -> str:
    """Markdown table: accuracy with the defaults, the best of the sweep, and the baselines."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result["is_trial"]:
            continue
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


def trials_table(results: Sequence[Result]) -> str:
    """Markdown table: accuracy in percent with the defaults and with each trial, by data set."""
    models: dict[str, dict[str, dict[str, Result]]] = {}
    for run in results:
        if run["default"] or run["is_trial"]:
            trials = models.setdefault(run["model"], {})
            trials.setdefault(run["changes"] or "the defaults", {})[run["set"]] = run
    names = list(dict.fromkeys(run["set"] for run in results))
    rows = [["model", "settings", *names]]
    for model, trials in models.items():
        for changes, runs in trials.items():
            cells = [f"{100 * runs[n]['accuracy']:.1f}" if n in runs else "" for n in names]
            rows.append([model, changes, *cells])
    return markdown_table(rows) + "\n"


def _shown(run: Result) -> str:
    return f"{100 * run['accuracy']:.1f} ({run['learning_rate']:.0e})".replace("e-0", "e-")


if __name__ == "__main__":
    main()
