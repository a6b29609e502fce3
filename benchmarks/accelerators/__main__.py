"""Compiles our steps for TPUs, without one, and writes docs/accelerators.md.

    python -m benchmarks.accelerators                         # Every row: hours.
    python -m benchmarks.accelerators --steps=base --chips=v5e --batch_sizes=8
    python -m benchmarks.accelerators --steps=base --set=model.recompute=block

A row is a step, a batch size, a chip and settings; rows that are measured replace those on file
(`docs/accelerators.json`), others stay. Batch sizes of a step are tried from the smallest on, until
one does not fit. `XLNET_JAX_PYTHON` names the interpreter that has jax and libtpu; `make tpu-check`
makes such an environment, and compiles one small row.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.steps import STEPS, Case, trace, write_step


def measure(case: Case, chip: str) -> dict:
    """Compiles one step for one chip.

    Returns:
      What `jax_side/compile_for_tpu.py` says, and what our own count says: `tokens` and
      `counted_flops` of a step, and `layers`.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_step(case, trace(case), folder)
        answer = other_python.run("compile_for_tpu.py", folder, CHIPS[chip].topology)
    return {
        **json.loads(answer),
        "tokens": case.shape().tokens,
        "counted_flops": case.flops(),
        "layers": case.shape().num_layers,
    }


def _list(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=_list, default=list(STEPS), help=f"of {', '.join(STEPS)}")
    parser.add_argument("--chips", type=_list, default=list(CHIPS), help=f"of {', '.join(CHIPS)}")
    parser.add_argument(
        "--batch_sizes", type=_list, help="rows on one device, ascending; default: those of a step"
    )
    parser.add_argument("--set", action="append", default=[], help="key=value of the recipe")
    parser.add_argument("--results", default=report.RESULTS, help="JSON file of all rows")
    parser.add_argument("--document", default=report.DOCUMENT, help="page with the tables")
    flags = parser.parse_args()
    unknown = [*(set(flags.steps) - set(STEPS)), *(set(flags.chips) - set(CHIPS))]
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; see --help")
    for name in flags.steps:
        sizes = map(int, flags.batch_sizes or STEPS[name].batch_sizes)
        fitting = set(flags.chips)
        for batch_size in sorted(sizes):
            case = STEPS[name].case(batch_size, tuple(flags.set))
            for chip in [chip for chip in flags.chips if chip in fitting]:
                row = measure(case, chip)
                if not row["fits"]:
                    fitting.discard(chip)
                key = {"step": name, "batch_size": batch_size, "chip": chip, "set": flags.set}
                report.add(flags.results, {**key, **row})
                print(json.dumps({**key, **row}), file=sys.stderr)
    report.write(flags.results, flags.document)
    print(json.dumps({"document": flags.document}))


if __name__ == "__main__":
    main()
