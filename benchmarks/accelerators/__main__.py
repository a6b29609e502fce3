"""Compiles our steps for TPUs and GPUs, without one, and writes docs/performance.md.

    python -m benchmarks.accelerators                         # The rows of the page: hours.
    python -m benchmarks.accelerators --tables=gpu            # Those of one table.
    python -m benchmarks.accelerators --steps=base --chips=v5e,h100 --batch_sizes=8
    python -m benchmarks.accelerators --steps=base --set=model.recompute=block
    python -m benchmarks.accelerators --steps=base --chips=v5e --batch_sizes=8 --kernels=20

A row is a step, a batch size, a chip and settings; rows that are measured replace those on file
(`docs/accelerators.json`), others stay. The page has those that `rows.py` names. Batch sizes of a
step are tried from the smallest on, until one does not fit. `XLNET_JAX_PYTHON` names the
interpreter that has jax and the compilers; `make tpu-check` makes such an environment, and compiles
small rows.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import itertools
import json
import sys
import tempfile

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.rows import TABLES, Key, row_of
from benchmarks.accelerators.steps import STEPS, Case, trace, write_step
from benchmarks.costs import flops
from benchmarks.harness.command_line import flag, parse, repeated


def measure(case: Case, chip: str, kernels: int = 0) -> dict:
    """Compiles one step for one chip.

    Args:
      case: the step.
      chip: name of a chip.
      kernels: how many kernels to print, those that take or move most.

    Returns:
      What `jax_side/compiling.py` says, and what our own count says: `tokens` and `counted_flops`
      of a step, `layers`, `parameters` and `precision`; `compiled` is the day.
    """
    kind = CHIPS[chip].kind
    with tempfile.TemporaryDirectory() as folder:
        write_step(case, trace(case), folder)
        gc.collect()  # The weights and moments of the step: 4 GB of large.
        target = kind.lower(), folder, CHIPS[chip].topology
        printed = other_python.run("compiling.py", *target, str(kernels))
    *largest, last = printed.splitlines()
    for line in largest:
        print(line, file=sys.stderr)
    answer = json.loads(last)
    if kind == "GPU" and answer["fits"]:
        # Its compiler counts no operations, and takes sizes that the device would not.
        answer |= {"flops": case.flops(), "bytes": answer["moved"], "cycles": None}
        needed = answer["arguments"] + answer["temporaries"]
        answer["fits"] = needed <= CHIPS[chip].memory - CHIPS[chip].reserved
    return {
        **answer,
        "tokens": case.shape().tokens,
        "counted_flops": case.flops(),
        "layers": case.shape().num_layers,
        "parameters": flops.num_parameters(case.shape()),
        "precision": case.load().training.precision,
        "compiled": datetime.date.today().isoformat(),
    }


def _keys(flags: argparse.Namespace) -> list[Key]:
    """Returns the rows to compile: of tables, or of the steps and chips that flags name."""
    if not flags.steps and not flags.chips:
        if flags.batch_sizes or flags.set:
            raise SystemExit("--batch_sizes and --set need --steps or --chips")
        return [key for table in flags.tables for key in TABLES[table]]
    return [
        Key(step, chip, batch_size, tuple(flags.set))
        for step, chip in itertools.product(flags.steps or STEPS, flags.chips or CHIPS)
        if CHIPS[chip].replicas == 1 or STEPS[step].kind == "pretrain"
        for batch_size in sorted(map(int, flags.batch_sizes or STEPS[step].batch_sizes))
    ]


def main() -> None:
    flags = parse(
        __doc__,
        tables=flag(list(TABLES), f"of {', '.join(TABLES)}"),
        steps=flag([], f"of {', '.join(STEPS)}; in place of tables"),
        chips=flag([], f"of {', '.join(CHIPS)}; in place of tables"),
        batch_sizes=flag([], "rows on one device; default: those of a step"),
        set=repeated("key=value of the recipe"),
        kernels=flag(0, "how many kernels to print"),
    )
    other_python.interpreter()
    unknown = {
        *(set(flags.tables) - set(TABLES)),
        *(set(flags.steps) - set(STEPS)),
        *(set(flags.chips) - set(CHIPS)),
    }
    if unknown:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; see --help")
    too_large = set()
    for key in _keys(flags):
        if (key.step, key.chip, key.settings) in too_large:
            continue
        case = STEPS[key.step].case(key.batch_size, CHIPS[key.chip], key.settings)
        row = {**row_of(key), **measure(case, key.chip, flags.kernels)}
        report.add(report.RESULTS, row)
        print(json.dumps(row), file=sys.stderr)
        if not row["fits"]:
            too_large.add((key.step, key.chip, key.settings))
    report.write(report.RESULTS, report.DOCUMENT)
    print(json.dumps({"document": report.DOCUMENT}))


if __name__ == "__main__":
    main()
