"""Finds the largest batches of fine-tuning that fit a GPU of 16 GB, beside those of the release.

    python -m benchmarks.accelerators.largest                 # Every cell of the table: hours.
    python -m benchmarks.accelerators.largest --steps=base-classify-128 --columns=float16

Each cell starts at the release's batch; the next size follows from the temporaries of a row, until
that is one that was compiled: near the limit, XLA itself computes values again, and more fit. Sizes
above 16 are multiples of 8. What was compiled is on file in docs/accelerators.json.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.__main__ import measure
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.steps import STEPS


def find(
    step: str, settings: tuple[str, ...], chip: str, start: int, results: str, tries: int = 9
) -> None:
    """Writes a row for each batch size that is compiled.

    Args:
      step: name of a step.
      settings: of the recipe.
      chip: a GPU's name.
      start: batch size to begin with.
      results: file of all rows.
      tries: how many sizes are compiled at most.
    """
    card = CHIPS[chip]
    tried: dict[int, bool] = {}
    size = start
    while size not in tried and size > 0 and len(tried) < tries:
        row = measure(STEPS[step].case(size, card, settings), chip)
        report.add(
            results,
            {"step": step, "batch_size": size, "chip": chip, "set": list(settings), **row},
        )
        tried[size] = row["fits"]
        print(json.dumps({"step": step, "set": settings, "rows": size, **row}), file=sys.stderr)
        room = card.memory - card.reserved - row["arguments"]
        predicted = _rounded(int(size * room / row["temporaries"]))
        fits = max((size for size, fits in tried.items() if fits), default=0)
        too_large = min((size for size, fits in tried.items() if not fits), default=1 << 30)
        size = min(max(predicted, fits), _rounded(too_large - 1))


def _rounded(size: int) -> int:
    return size - size % 8 if size > 16 else size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", default=",".join(report.OF_RELEASE), help="comma-separated")
    parser.add_argument("--columns", default=";".join(report.OF_CARD), help="semicolon-separated")
    parser.add_argument("--results", default=report.RESULTS, help="JSON file of all rows")
    parser.add_argument("--document", default=report.DOCUMENT, help="page with the tables")
    parser.add_argument("--start", type=int, help="first size; default: the release's")
    parser.add_argument("--tries", type=int, default=9, help="sizes of a cell, at most")
    flags = parser.parse_args()
    other_python.check(parser)
    for column in flags.columns.split(";"):
        for step in flags.steps.split(","):
            start, settings = flags.start or report.OF_RELEASE[step], report.OF_CARD[column]
            find(step, settings, report.CARD, start, flags.results, flags.tries)
            report.write(flags.results, flags.document)


if __name__ == "__main__":
    main()
