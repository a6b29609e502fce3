"""Compiles a step for a TPU that is not there, with the TPU's own compiler.

    python compile_for_tpu.py STEP TOPOLOGY [--kernels=20]

STEP is a folder that `benchmarks.accelerators` wrote, TOPOLOGY one like v5e:2x2. Needs jax and
libtpu. The last line of standard output is one JSON object: see `compiling.compile_step`, and
cycles, the sum of the compiler's estimates, which leave some instructions out; and all_reduced, the
bytes that are summed over devices. --kernels prints those of most cycles, each with the operation
that it comes from.
"""

from __future__ import annotations

import argparse
import json
import os

# Before jax starts: no hardware is asked for, and several compilers may run at once.
os.environ.update(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

from compiling import compile_step
from hlo import all_reduced, estimates_of
from jax.experimental import topologies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step")
    parser.add_argument("topology")
    parser.add_argument("--kernels", type=int, default=0, help="how many kernels to print")
    flags = parser.parse_args()
    devices = topologies.get_topology_desc(platform="tpu", topology_name=flags.topology).devices
    measured, text = compile_step(flags.step, devices, "tpu")
    if measured["fits"]:
        estimates = estimates_of(text or "")
        measured["cycles"] = None if text is None else sum(cycles for cycles, *_ in estimates)
        measured["all_reduced"] = None if text is None else all_reduced(text)
        for cycles, shape, operation in sorted(estimates, reverse=True)[: flags.kernels]:
            print(f"{cycles / 1e3:9.1f} thousand cycles  {shape[:60]:60s} {operation[-90:]}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
