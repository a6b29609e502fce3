"""Compiles a step for an NVIDIA GPU that is not there, with XLA's own compiler.

    python compile_for_gpu.py STEP CARD [--kernels=20]

STEP is a folder that `benchmarks.accelerators` wrote, CARD the description of a GPU as XLA's text
(`chips.Chip.topology`). Needs jax with its plugin for CUDA, and neither a GPU nor a driver. What
XLA would choose by trying on the device is left at its defaults, and products are cuBLAS'. The last
line of standard output is one JSON object: see `compiling.compile_step`, and

  kernels: how many the step launches, library calls included.
  moved: bytes, if every kernel reads its operands and writes its results once.
  kinds: {kind of kernel: [number, bytes]}.

--kernels prints those that move most, each with the operation that it comes from.
"""

from __future__ import annotations

import argparse
import collections
import json
import os

# Before jax starts: there is no device to try on.
os.environ.update(
    JAX_PLATFORMS="cpu",
    XLA_FLAGS="--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false "
    "--xla_gpu_enable_cublaslt=false --xla_gpu_enable_command_buffer=",
)

from compiling import compile_step
from hlo import kernels_of
from jax.experimental import topologies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step")
    parser.add_argument("card")
    parser.add_argument("--kernels", type=int, default=0, help="how many kernels to print")
    flags = parser.parse_args()
    topology = topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=flags.card, topology="1x1x1"
    )
    measured, text = compile_step(flags.step, topology.devices, "gpu")
    if text:
        kernels = kernels_of(text)
        kinds: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
        for kernel in kernels:
            kinds[kernel.kind][0] += 1
            kinds[kernel.kind][1] += kernel.moved
        measured |= {
            "kernels": len(kernels),
            "moved": sum(kernel.moved for kernel in kernels),
            "kinds": kinds,
        }
        for kernel in sorted(kernels, key=lambda kernel: -kernel.moved)[: flags.kernels]:
            print(f"{kernel.moved / 1e6:9.1f} MB  {kernel.shape[:60]:60s} {kernel.operation[-90:]}")
    print(json.dumps(measured))


if __name__ == "__main__":
    main()
