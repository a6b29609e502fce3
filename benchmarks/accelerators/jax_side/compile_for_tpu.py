"""Compiles a step for a TPU that is not there, with the TPU's own compiler.

    python compile_for_tpu.py STEP TOPOLOGY

STEP is a folder that `benchmarks.accelerators` wrote, TOPOLOGY one like v5e:2x2. Needs jax and
libtpu. The last line of standard output is one JSON object: see `compiling.compile_step`, and
cycles, the sum of the compiler's estimates, which leave some instructions out; and all_reduced, the
bytes that are summed over devices.
"""

from __future__ import annotations

import json
import os
import re
import sys

# Before jax starts: no hardware is asked for, and several compilers may run at once.
os.environ.update(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

from compiling import compile_step
from hlo import all_reduced
from jax.experimental import topologies

if __name__ == "__main__":
    folder, topology = sys.argv[1:]
    devices = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices
    measured, text = compile_step(folder, devices, "tpu")
    if measured["fits"]:
        cycles = re.findall(r'"estimated_cycles":"(\d+)"', text or "")
        measured["cycles"] = None if text is None else sum(map(int, cycles))
        measured["all_reduced"] = None if text is None else all_reduced(text)
    print(json.dumps(measured))
