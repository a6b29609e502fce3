"""Compiles our steps for TPUs and GPUs, without one, and writes docs/accelerators.md.

    python -m benchmarks.accelerators                         # Every row: hours.
    python -m benchmarks.accelerators --steps=base --chips=v5e,h100 --batch_sizes=8
    python -m benchmarks.accelerators --steps=base --set=model.recompute=block
    python -m benchmarks.accelerators --steps=base --chips=v5e --batch_sizes=8 --kernels=20

A row is a step, a batch size, a chip and settings; rows that are measured replace those on file
(`docs/accelerators.json`), others stay. Batch sizes of a step are tried from the smallest on, until
one does not fit. `XLNET_JAX_PYTHON` names the interpreter that has jax and the compilers; `make
tpu-check` makes such an environment, and compiles small rows.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile

from benchmarks.accelerators import other_python, report
from benchmarks.accelerators.chips import CHIPS
from benchmarks.accelerators.steps import STEPS, Case, trace, write_step
from benchmarks.costs import flops


def measure(case: Case, chip: str, kernels: int = 0) -> dict:
    """Compiles one step for one chip.

    Args:
      case: the step.
      chip: name of a chip.
      kernels: how many kernels to print, those that take or move most.

    Returns:
      What `jax_side/compile_for_tpu.py` or `compile_for_gpu.py` says, and what our own count says:
      `tokens` and `counted_flops` of a step, `layers`, `parameters` and `precision`.
    """
    program = f"compile_for_{CHIPS[chip].kind.lower()}.py"
    with tempfile.TemporaryDirectory() as folder:
        write_step(case, trace(case), folder)
        gc.collect()  # The weights and moments of the step: 4 GB of large.
        printed = other_python.run(program, folder, CHIPS[chip].topology, f"--kernels={kernels}")
    *largest, last = printed.splitlines()
    if kernels:
        print("\n".join(largest), file=sys.stderr)
    answer = json.loads(last)
    if CHIPS[chip].kind == "GPU" and answer["fits"]:
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
    parser.add_argument("--kernels", type=int, default=0, help="how many kernels to print")
    parser.add_argument("--results", default=report.RESULTS, help="JSON file of all rows")
    parser.add_argument("--document", default=report.DOCUMENT, help="page with the tables")
    flags = parser.parse_args()
    other_python.check(parser)
    unknown = [*(set(flags.steps) - set(STEPS)), *(set(flags.chips) - set(CHIPS))]
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; see --help")
    for name in flags.steps:
        sizes = map(int, flags.batch_sizes or STEPS[name].batch_sizes)
        fitting = set(flags.chips)
        for batch_size in sorted(sizes):
            for chip in [chip for chip in flags.chips if chip in fitting]:
                if CHIPS[chip].replicas > 1 and STEPS[name].kind != "pretrain":
                    continue
                case = STEPS[name].case(batch_size, CHIPS[chip], tuple(flags.set))
                row = measure(case, chip, flags.kernels)
                if not row["fits"]:
                    fitting.discard(chip)
                key = {"step": name, "batch_size": batch_size, "chip": chip, "set": flags.set}
                report.add(flags.results, {**key, **row})
                print(json.dumps({**key, **row}), file=sys.stderr)
    report.write(flags.results, flags.document)
    print(json.dumps({"document": flags.document}))


if __name__ == "__main__":
    main()
