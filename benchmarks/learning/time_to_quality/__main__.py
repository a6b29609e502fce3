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
from collections.abc import Iterator

from benchmarks.harness.command_line import flag, parse, repeated, required
from benchmarks.harness.tables import read_rows
from benchmarks.learning.time_to_quality import report, runs

RESULTS, DOCUMENT = "docs/time_to_quality.json", "docs/time_to_quality.md"
_RATES = ["1e-3", "3e-3", "6e-3"]


def main() -> None:
    flags = parse(
        __doc__,
        text=repeated("NAME=FILE, one paragraph per line, blank between documents"),
        output=required("directory for data and models"),
        recipe=flag("tiny", "recipe in configs/", choices=tuple(runs.VOCAB_SIZES)),
        seeds=flag(["0", "1", "2"], "seeds of our runs"),
        steps=flag(["500", "1400"], "numbers of steps of our runs"),
        hf_rates=flag(_RATES, "learning rates of HF"),
        tfm_rates=flag(_RATES, "learning rates of tf-models-official"),
        seconds=flag(["60", "150", "300"], "times of the runs of both"),
        set=repeated("key=value: overrides a key"),
        trials=flag(False, "compare our runs at their steps"),
        train=flag(False, "train only"),
        evaluate=flag(False, "evaluate what is trained, only"),
        results=flag(RESULTS, "file of finished rows"),
        document=flag(DOCUMENT, "Markdown file to write"),
    )
    texts = dict(text.split("=", 1) for text in flags.text)
    trained = 0
    for run in itertools.chain.from_iterable(_runs(flags, text) for text in texts):
        directory = run.directory(flags.output)
        runs.prepare_data(texts[run.text], flags.recipe, directory)
        if report.has(flags.results, run):
            continue
        if not flags.evaluate and not runs.is_trained(run, directory):
            print(run.name, file=sys.stderr, flush=True)
            runs.train(run, directory)
            trained += 1
        if not flags.train and runs.is_trained(run, directory):
            report.add(flags.results, run, runs.evaluate_checkpoints(run, directory))
    if not flags.train:
        report.write(flags.results, flags.document)
    print(json.dumps({"rows": len(read_rows(flags.results)), "trained": trained}))


def _runs(flags: argparse.Namespace, text: str) -> Iterator[runs.Run]:
    """The runs that the flags ask for, in the order in which they are trained."""
    for steps, seed in itertools.product(map(int, flags.steps), map(int, flags.seeds)):
        yield runs.Run(
            *(text, "ours", seed, steps),
            overrides=tuple(flags.set),
            recipe=flags.recipe,
            is_timed=not flags.trials,
        )
    peers = {} if flags.trials else {"hf": flags.hf_rates, "tfm": flags.tfm_rates}
    if peers and not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        print("HF is skipped: `make parity` installs torch and transformers", file=sys.stderr)
        del peers["hf"]
    for peer, rates in peers.items():
        for rate, seconds in itertools.product(map(float, rates), map(float, flags.seconds)):
            yield runs.Run(text, peer, 0, rate=rate, seconds=seconds, recipe=flags.recipe)


if __name__ == "__main__":
    main()
