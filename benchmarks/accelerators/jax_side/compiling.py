"""What a compiler says of a step, for a device that is not there."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hlo import count_loops, largest_constant
from jax._src.lib import xla_client
from jax.sharding import SingleDeviceSharding
from portable import load
from run_bundle import as_function

_TOO_LARGE = "RESOURCE_EXHAUSTED"


def compile_step(
    folder: str, devices: list[Any], platform: str
) -> tuple[dict[str, Any], str | None]:
    """Compiles a step, the state donated.

    Args:
      folder: what `benchmarks.accelerators` wrote.
      devices: of a topology; the step is that of the first, or of each if it sums gradients.
      platform: `tpu` or `gpu`.

    Returns:
      What the compiler says, and the text of the optimized module, None where this jax cannot read
      the module.

      fits: whether it fits the device's memory; if not, error, and nothing else.
      arguments, temporaries, code: bytes on the device; the new state replaces the old one.
      flops, bytes: of the optimized module, by the compiler's cost analysis; None
        where it has none, as for a GPU.
      loops: `while` instructions of the optimized module.
      largest_constant: bytes. Both are None where the module cannot be read.
      seconds, cpu_seconds: of compiling, by the clock and of all cores together; the latter says
        more where the machine is busy.
    """
    step = load(folder)
    device, replicas = devices[0], step.description["replicas"]
    sharding = SingleDeviceSharding(device)
    arrays = [
        [
            jax.ShapeDtypeStruct(spec["shape"], jnp.dtype(spec["dtype"]), sharding=sharding)
            for spec in step.description[part]
        ]
        for part in ("batch", "state")
    ]
    lowered = as_function(step.module, step.description, platform).lower(*arrays)
    start, cpu_start = time.monotonic(), time.process_time()
    try:
        compiled: Any = lowered.compile() if replicas == 1 else _Replicated(lowered, devices)
    except jax.errors.JaxRuntimeError as error:
        if _TOO_LARGE not in str(error):
            raise
        return {"fits": False, "error": str(error).partition("\n")[0]}, None
    seconds, cpu_seconds = time.monotonic() - start, time.process_time() - cpu_start
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
    try:
        text = compiled.as_text()
    except jax.errors.JaxRuntimeError:
        text = None
    measured = {
        "fits": True,
        "device": device.device_kind,
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "code": memory.generated_code_size_in_bytes,
        "flops": cost.get("flops"),
        "bytes": cost.get("bytes accessed"),
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "loops": None if text is None else count_loops(text),
        "largest_constant": None if text is None else largest_constant(text),
    }
    return measured, text


class _Replicated:
    """A module of replicas that sum over each other, which `jax.jit` does not compile any more."""

    def __init__(self, lowered: Any, devices: list[Any]):
        options = xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = len(devices), 1
        ids = np.array([[device.id] for device in devices])
        options.device_assignment = xla_client.DeviceAssignment.create(ids)
        self._executable = devices[0].client.compile(
            lowered.compiler_ir("stablehlo"), xla_client.DeviceList(tuple(devices)), options
        )

    def memory_analysis(self):
        return self._executable.get_compiled_memory_stats()

    def cost_analysis(self):
        return self._executable.cost_analysis()

    def as_text(self) -> str:
        return self._executable.hlo_modules()[0].to_string()
