"""Published figures of the devices that the compilers know, alone or many of them."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Chip:
    """One device: a GPU, a TPU chip, or for v4 one of its two cores, each with half of the memory.

    Attributes:
      topology: what the compiler calls it: a slice of TPUs, or the description of a GPU.
      flops: 16-bit floating-point operations per second, dense.
      bandwidth: bytes per second of its memory.
      memory: bytes of its memory.
      clock: cycles per second.
      devices: devices of a chip.
      replicas: devices of the slice that train together.
      links: bytes per second between the chips of a slice, of all links of a chip.
      kind: `TPU` or `GPU`: the forms of operations, and the compiler.
      precision: what training computes in: the 16-bit type that the device multiplies.
      float32_flops: operations per second of products in float32, with TensorFloat-32 where the
        device has it, which TensorFlow and XLA use by default.
      reserved: bytes that a step cannot have: a GPU's driver and libraries. The TPU's compiler
        knows by itself what fits.
    """

    topology: str
    flops: float
    bandwidth: float
    memory: float
    clock: float
    devices: int = 1
    replicas: int = 1
    links: float = 0
    kind: str = "TPU"
    precision: str = "mixed_bfloat16"
    float32_flops: float = 0
    reserved: float = 0


def _gpu(
    name: str, capability: str, cores: int, l2_cache: int, shared_memory: int, **figures
) -> Chip:
    """An NVIDIA GPU, from its data sheet and NVIDIA's table of compute capabilities.

    Args:
      name: what the driver calls it.
      capability: compute capability.
      cores: streaming multiprocessors.
      l2_cache: bytes.
      shared_memory: bytes of one multiprocessor.
      **figures: of `Chip`.
    """
    major, minor = capability.split(".")
    fields = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32,
        "shared_memory_per_block": 49152,
        "shared_memory_per_core": shared_memory,
        "shared_memory_per_block_optin": shared_memory - 1024,
        "threads_per_core_limit": 2048,
        "core_count": cores,
        "fpus_per_core": 128 if capability == "9.0" else 64,
        "block_dim_limit_x": 2**31 - 1,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "memory_bandwidth": int(figures["bandwidth"]),
        "l2_cache_size": l2_cache,
        "clock_rate_ghz": figures["clock"] / 1e9,
        "device_memory_size": figures["memory"],
        "registers_per_core_limit": 65536,
        "registers_per_block_limit": 65536,
    }
    info = " ".join(f"{field}: {value}" for field, value in fields.items())
    topology = (
        f"gpu_device_info {{ {info} cuda_compute_capability {{ major: {major} minor: {minor} }} }} "
        'platform_name: "CUDA" dnn_version_info { major: 9 minor: 7 } '
        f'runtime_version {{ major: 12 minor: 8 }} device_description_str: "{name}"'
    )
    return Chip(topology, kind="GPU", reserved=1e9, **figures)


_MB = 2**20
CHIPS = {
    "v5e": Chip("v5e:2x2", 197e12, 819e9, 16e9, 1.5e9),
    "v4": Chip("v4:2x2x1", 137.5e12, 614e9, 16e9, 1.05e9, devices=2),
    "v5p": Chip("v5p:2x2x1", 459e12, 2765e9, 95e9, 1.75e9),
    "512 v5p": Chip("v5p:8x8x8", 459e12, 2765e9, 95e9, 1.75e9, replicas=512, links=600e9),
    "16 v5e": Chip("v5e:4x4", 197e12, 819e9, 16e9, 1.5e9, replicas=16, links=200e9),
    "v6e": Chip("v6e:2x2", 918e12, 1640e9, 32e9, 1.75e9),
    "h100": _gpu(
        "NVIDIA H100 80GB HBM3",
        capability="9.0",
        cores=132,
        l2_cache=50 * _MB,
        shared_memory=228 * 1024,
        flops=989e12,
        float32_flops=494e12,
        bandwidth=3352e9,
        memory=81007 * _MB,
        clock=1.98e9,
    ),
    "a100": _gpu(
        "NVIDIA A100-SXM4-40GB",
        capability="8.0",
        cores=108,
        l2_cache=40 * _MB,
        shared_memory=164 * 1024,
        flops=312e12,
        float32_flops=156e12,
        bandwidth=1555e9,
        memory=40536 * _MB,
        clock=1.41e9,
    ),
    "v100": _gpu(
        "Tesla V100-SXM2-16GB",
        capability="7.0",
        cores=80,
        l2_cache=6 * _MB,
        shared_memory=96 * 1024,
        flops=125e12,
        float32_flops=15.7e12,
        bandwidth=900e9,
        memory=16160 * _MB,
        clock=1.53e9,
        precision="mixed_float16",
    ),
}
