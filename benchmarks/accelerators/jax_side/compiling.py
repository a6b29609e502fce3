"""Compiles a step for a TPU or an NVIDIA GPU that is not there, with the device's own compiler.

    python compiling.py tpu STEP v5e:2x2 20
    python compiling.py gpu STEP CARD 20

STEP is a folder that `benchmarks.accelerators` wrote, CARD the description of a GPU as XLA's text
(`chips.Chip.topology`), the number that of kernels to print: those that take or move most, each
with the operation that it comes from. Needs jax, with libtpu or with its plugin for CUDA, and
neither a device nor a driver. What XLA would choose by trying on a GPU is left at its defaults, and
products are cuBLAS'. The last line of standard output is one JSON object: see `compile_step`, and
of a TPU

  cycles: sum of the compiler's estimates, which leave some instructions out.
  all_reduced: bytes that are summed over devices.

and of a GPU

  kernels: how many the step launches, library calls included.
  moved: bytes, if every kernel reads its operands and writes its results once.
  kinds: {kind of kernel: [number, bytes]}.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

# Before jax starts: there is no device to try on, and several compilers may run at once.
os.environ |= {
    "tpu": {
        "JAX_PLATFORMS": "cpu",
        "TPU_SKIP_MDS_QUERY": "1",
        "TPU_WORKER_HOSTNAMES": "localhost",
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    },
    "gpu": {
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false "
        "--xla_gpu_enable_cublaslt=false --xla_gpu_enable_command_buffer=",
    },
}[sys.argv[1]]

import jax
import jax.numpy as jnp
import numpy as np
from hlo import all_reduced, count_loops, estimates_of, kernels_of, largest_constant
from jax._src.lib import xla_client
from jax.experimental import topologies
from jax.sharding import SingleDeviceSharding
from portable import load
from run_bundle import as_function

_TOO_LARGE = "RESOURCE_EXHAUSTED"


def main() -> None:
    platform, step, target, number = sys.argv[1:]
    if platform == "tpu":
        topology = topologies.get_topology_desc(platform="tpu", topology_name=target)
    else:
        topology = topologies.get_topology_desc(
            platform="cuda", topology_name="", target_config=target, topology="1x1x1"
        )
    measured, text = compile_step(step, topology.devices, platform)
    of_text = (_of_tpu if platform == "tpu" else _of_gpu)(text) if text else {}
    largest = sorted(of_text.pop("largest", []), reverse=True)[: int(number)]
    for cost, unit, shape, operation in largest:
        print(f"{cost:9.1f} {unit}  {shape[:60]:60s} {operation[-90:]}")
    unknown = {"cycles": None, "all_reduced": None} if measured["fits"] else {}
    print(json.dumps({**measured, **(of_text or unknown)}))


def _of_tpu(text: str) -> dict[str, Any]:
    estimates = estimates_of(text)
    return {
        "cycles": sum(cycles for cycles, *_ in estimates),
        "all_reduced": all_reduced(text),
        "largest": [(cycles / 1e3, "thousand cycles", *rest) for cycles, *rest in estimates],
    }


def _of_gpu(text: str) -> dict[str, Any]:
    kernels = kernels_of(text)
    kinds: dict[str, list[int]] = {}
    for kernel in kernels:
        number, moved = kinds.get(kernel.kind, (0, 0))
        kinds[kernel.kind] = [number + 1, moved + kernel.moved]
    return {
        "kernels": len(kernels),
        "moved": sum(kernel.moved for kernel in kernels),
        "kinds": kinds,
        "largest": [(k.moved / 1e6, "MB", k.shape, k.operation) for k in kernels],
    }


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


if __name__ == "__main__":
    main()
