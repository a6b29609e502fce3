"""Time to quality: held-out loss over training steps, beside other implementations.

    python -m benchmarks.learning.time_to_quality --text=news=FILE --output=DIR

Trains, one after the other and each in a process of its own, our recipe for several numbers of
steps, HF's XLNet with HF's permutation collator for several learning rates, and the XLNet of
tf-models-official. All have the same shape, vocabulary, windows and initial scale. Checkpoints are
evaluated afterwards, on the same held-out targets. HF's runs need torch and transformers, and are
skipped without.

A run is a row of --results; rows on file are not run again. The machine may do other work, as
losses are compared at steps; how long a step takes is measured by `benchmarks.training`. The last
line is JSON:

    rows        number of rows on file
    trained     number of runs trained now
    losses      held-out loss of each row, in nats
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
DOCUMENT_OF_SETTINGS = "CONTRIBUTING.md"


def main() -> None:
    flags = parse(
        __doc__,
        text=repeated("NAME=FILE, one paragraph per line, blank between documents"),
        output=required("directory for data and models"),
        recipe=flag("tiny", "recipe in configs/", choices=tuple(runs.VOCAB_SIZES)),
        seeds=flag(["0", "1", "2"], "seeds of our runs"),
        steps=flag(["460", "4100"], "numbers of steps of our runs"),
        hf_steps=flag(["1900"], "numbers of steps of HF"),
        tfm_steps=flag(["3500"], "numbers of steps of tf-models-official"),
        rates=flag(["1e-3", "3e-3", "6e-3"], "learning rates of both"),
        set=repeated("key=value: overrides a key"),
        results=flag(RESULTS, "file of finished rows"),
        document=flag(DOCUMENT, "Markdown file to write"),
        document_of_settings=flag(DOCUMENT_OF_SETTINGS, "that of other settings"),
    )
    texts = dict(text.split("=", 1) for text in flags.text)
    trained = 0
    for run in itertools.chain.from_iterable(_runs(flags, text) for text in texts):
        directory = run.directory(flags.output)
        runs.prepare_data(texts[run.text], flags.recipe, directory)
        if report.has(flags.results, run):
            continue
        if not runs.is_trained(run, directory):
            print(run.name, file=sys.stderr, flush=True)
            runs.train(run, directory)
            trained += 1
        report.add(flags.results, run, runs.evaluate_checkpoints(run, directory))
    if flags.document:
        report.write(flags.results, flags.document, flags.document_of_settings)
    losses = [row["loss"] for row in read_rows(flags.results)]
    print(json.dumps({"rows": len(losses), "trained": trained, "losses": losses}))


def _runs(flags: argparse.Namespace, text: str) -> Iterator[runs.Run]:
    """The runs that the flags ask for, in the order in which they are trained."""
    for steps, seed in itertools.product(map(int, flags.steps), map(int, flags.seeds)):
        yield runs.Run(text, "ours", seed, steps, overrides=tuple(flags.set), recipe=flags.recipe)
    peers = {"hf": flags.hf_steps, "tfm": flags.tfm_steps}
    if flags.hf_steps and not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        print("HF is skipped: `make parity` installs torch and transformers", file=sys.stderr)
        del peers["hf"]
    for peer, numbers in peers.items():
        for steps, rate in itertools.product(map(int, numbers), map(float, flags.rates)):
            yield runs.Run(text, peer, 0, steps, rate=rate, recipe=flags.recipe)


if __name__ == "__main__":
    main()
