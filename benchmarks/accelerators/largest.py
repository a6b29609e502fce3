"""Finds the largest batches of fine-tuning that fit a GPU of 16 GB, beside those of the release.

    python -m benchmarks.accelerators.largest                 # Every cell of the table: hours.
    python -m benchmarks.accelerators.largest --steps=base-classify-128 --columns=float16

Each cell starts at the release's batch; the next size follows from the temporaries of a row, until
that is one that was compiled: near the limit, XLA itself computes values again, and more fit. Sizes
above 16 are multiples of 8. What was compiled is on file in docs/accelerators.json.
"""

from __future__ import annotations

import itertools
import json
import sys

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.__main__ import measure
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.rows import Key, row_of
from benchmarks.accelerators.steps import STEPS
from benchmarks.harness.command_line import flag, parse

_TRIES = 9  # Sizes of a cell that are compiled, at most.


def find(step: str, settings: tuple[str, ...], chip: str, start: int, results: str) -> None:
    """Writes a row for each batch size that is compiled.

    Args:
      step: name of a step.
      settings: of the recipe.
      chip: a GPU's name.
      start: batch size to begin with.
      results: file of all rows.
    """
    card = CHIPS[chip]
    tried: dict[int, bool] = {}
    size = start
    while size not in tried and size > 0 and len(tried) < _TRIES:
        key = Key(step, chip, size, settings)
        row = {**row_of(key), **measure(STEPS[step].case(size, card, settings), chip)}
        report.add(results, row)
        print(json.dumps(row), file=sys.stderr)
        tried[size] = row["fits"]
        room = card.memory - card.reserved - row["arguments"]
        predicted = _rounded(int(size * room / row["temporaries"]))
        fits = max((size for size, fits in tried.items() if fits), default=0)
        too_large = min((size for size, fits in tried.items() if not fits), default=1 << 30)
        size = min(max(predicted, fits), _rounded(too_large - 1))


def _rounded(size: int) -> int:
    return size - size % 8 if size > 16 else size


def main() -> None:
    flags = parse(
        __doc__,
        steps=flag(list(report.OF_RELEASE), "names of steps"),
        columns=flag(";".join(report.OF_CARD), "semicolon-separated"),
    )
    other_python.interpreter()
    for column, step in itertools.product(flags.columns.split(";"), flags.steps):
        start, settings = report.OF_RELEASE[step], report.OF_CARD[column]
        find(step, settings, report.CARD, start, report.RESULTS)
        report.write(report.RESULTS, report.DOCUMENT)


if __name__ == "__main__":
    main()
