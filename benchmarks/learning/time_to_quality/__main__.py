"""Time to quality: held-out loss over wall time, imports and compilation included.

    python -m benchmarks.learning.time_to_quality --text=news=FILE --output=DIR

Trains, one after the other and each in a process of its own, our recipe for several numbers of
steps, HF's XLNet with HF's permutation collator for several learning rates, and the XLNet of
tf-models-official. All have the same shape, vocabulary, windows and initial scale. The clock
starts with the process. Checkpoints are evaluated afterwards, on the same held-out targets, so
evaluation costs no training time. HF's runs need torch and transformers, and are skipped without.

A run is a row of --results; rows on file are not run again. Training rows needs the machine alone;
`--train` and `--evaluate` do one half of the work. With `--trials`, our runs are compared at their
steps, in a table of their own, so that the machine may do other work. The last line is JSON:

    rows        number of rows on file
    trained     number of runs trained now
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import sys

from benchmarks.learning.time_to_quality.data import VOCAB_SIZES
from official.xlnet.cli import set_environment_defaults

RESULTS, DOCUMENT = "docs/time_to_quality.json", "docs/time_to_quality.md"


def main() -> None:
    arguments = _arguments()
    set_environment_defaults()
    from benchmarks.harness.rows import read_rows
    from benchmarks.learning.time_to_quality import report, runs
    from benchmarks.learning.time_to_quality.data import prepare_data

    texts = dict(text.split("=", 1) for text in arguments.text)
    for name, path in texts.items():
        run = runs.Run(name, "ours", 0, recipe=arguments.recipe)
        prepare_data(path, arguments.recipe, run.directory(arguments.output))
    trained = 0
    for run in _runs(arguments, list(texts)):
        directory = run.directory(arguments.output)
        if report.has(arguments.results, run):
            continue
        if not arguments.evaluate and not runs.is_trained(run, directory):
            print(run.name, file=sys.stderr, flush=True)
            runs.train(run, directory)
            trained += 1
        if not arguments.train and runs.is_trained(run, directory):
            report.add(arguments.results, run, runs.evaluate_checkpoints(run, directory))
    if not arguments.train:
        report.write(arguments.results, arguments.document)
    print(json.dumps({"rows": len(read_rows(arguments.results)), "trained": trained}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        help="NAME=FILE, one paragraph per line, blank between documents; may be repeated",
    )
    parser.add_argument("--output", required=True, help="directory for data and models")
    parser.add_argument("--recipe", default="tiny", choices=tuple(VOCAB_SIZES))
    parser.add_argument("--seeds", default="0,1,2", help="seeds of our runs")
    parser.add_argument("--steps", default="500,1400", help="numbers of steps of our runs")
    parser.add_argument("--hf_rates", default="1e-3,3e-3,6e-3", help="learning rates of HF")
    parser.add_argument("--tfm_rates", default="1e-3,3e-3,6e-3", help="of tf-models-official")
    parser.add_argument("--seconds", default="60,150,300", help="times of the runs of both")
    parser.add_argument("--set", action="append", default=[], help="key=value: overrides a key")
    parser.add_argument("--trials", action="store_true", help="compare our runs at their steps")
    parser.add_argument("--train", action="store_true", help="train only")
    parser.add_argument("--evaluate", action="store_true", help="evaluate what is trained, only")
    parser.add_argument("--results", default=RESULTS, help="file of finished rows")
    parser.add_argument("--document", default=DOCUMENT, help="Markdown file to write")
    return parser.parse_args()


def _runs(arguments: argparse.Namespace, texts: list[str]):
    """The runs that the flags ask for, in the order in which they are trained."""
    from benchmarks.learning.time_to_quality.runs import Run

    def split(flag: str) -> list[str]:
        return [part for part in flag.split(",") if part]

    overrides = tuple(arguments.set)
    for text in texts:
        for steps, seed in itertools.product(split(arguments.steps), split(arguments.seeds)):
            yield Run(
                *(text, "ours", int(seed), int(steps)),
                overrides=overrides,
                recipe=arguments.recipe,
                is_timed=not arguments.trials,
            )
        if arguments.trials:
            continue
        for peer, rates in (("hf", arguments.hf_rates), ("tfm", arguments.tfm_rates)):
            if peer == "hf" and rates and not _has_torch():
                print(
                    "HF is skipped: torch and transformers are not installed (`make parity` "
                    "installs them)",
                    file=sys.stderr,
                )
                continue
            for rate, seconds in itertools.product(split(rates), split(arguments.seconds)):
                yield Run(
                    *(text, peer, 0),
                    rate=float(rate),
                    seconds=float(seconds),
                    recipe=arguments.recipe,
                )


def _has_torch() -> bool:
    return all(map(importlib.util.find_spec, ("torch", "transformers")))


if __name__ == "__main__":
    main()
