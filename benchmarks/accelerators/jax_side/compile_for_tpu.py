"""Compiles a step for a TPU that is not there, with the TPU's own compiler.

    python compile_for_tpu.py STEP TOPOLOGY

STEP is a folder that `benchmarks.accelerators` wrote, TOPOLOGY one like v5e:2x2. Needs jax and
libtpu. The last line of standard output is one JSON object.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time

# Before jax starts: no hardware is asked for, and several compilers may run at once.
os.environ.update(
    JAX_PLATFORMS="cpu",
    TPU_SKIP_MDS_QUERY="1",
    TPU_WORKER_HOSTNAMES="localhost",
    ALLOW_MULTIPLE_LIBTPU_LOAD="1",
)

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from portable import load
from run_bundle import as_function

_TOO_LARGE = "RESOURCE_EXHAUSTED"
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s64": 8, "u64": 8, "f64": 8}


def compile_step(folder: str, topology: str) -> dict[str, float | int | bool | str | None]:
    """Compiles a step, the state donated, and says what the compiler says of it.

    Returns:
      fits: whether it fits the device's memory; if not, error, and nothing else.
      arguments, temporaries, code: bytes on the device; the new state replaces the old one.
      flops, bytes: of the optimized module, by the compiler's cost analysis.
      cycles: the sum of the compiler's estimates, which leave some instructions out.
      loops: `while` instructions of the optimized module.
      largest_constant: bytes. These three are None where jax cannot read the optimized module.
      seconds, cpu_seconds: of compiling, by the clock and of all cores together; the latter says
        more where the machine is busy.
    """
    step = load(folder)
    device = topologies.get_topology_desc(platform="tpu", topology_name=topology).devices[0]
    sharding = SingleDeviceSharding(device)
    arrays = [
        [
            jax.ShapeDtypeStruct(spec["shape"], jnp.dtype(spec["dtype"]), sharding=sharding)
            for spec in step.description[part]
        ]
        for part in ("batch", "state")
    ]
    lowered = as_function(step.module, step.description, "tpu").lower(*arrays)
    start, cpu_start = time.monotonic(), time.process_time()
    try:
        compiled = lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        if _TOO_LARGE not in str(error):
            raise
        return {"fits": False, "error": str(error).partition("\n")[0]}
    seconds, cpu_seconds = time.monotonic() - start, time.process_time() - cpu_start
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    return {
        "fits": True,
        "device": device.device_kind,
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "code": memory.generated_code_size_in_bytes,
        "flops": cost["flops"],
        "bytes": cost["bytes accessed"],
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        **_read(compiled),
    }


def _read(compiled) -> dict[str, int | None]:
    """What the optimized module's text says; None where this jax cannot read the module."""
    try:
        text = compiled.as_text()
    except jax.errors.JaxRuntimeError:
        return {"cycles": None, "loops": None, "largest_constant": None}
    return {
        "cycles": sum(int(n) for n in re.findall(r'"estimated_cycles":"(\d+)"', text)),
        "loops": len(re.findall(r" while\(", text)),
        "largest_constant": _largest_constant(text),
    }


def _largest_constant(text: str) -> int:
    sizes = [
        _BYTES.get(dtype, 4) * math.prod(int(size) for size in shape.split(",") if size)
        for dtype, shape in re.findall(r" = (\w+)\[([\d,]*)\]\S* constant\(", text)
    ]
    return max(sizes, default=0)


if __name__ == "__main__":
    print(json.dumps(compile_step(*sys.argv[1:])))
