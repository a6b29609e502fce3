"""Published figures of the TPUs that the compiler knows."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Chip:
    """One device: a chip, or for v4 one of its two cores, each with half of the memory.

    Attributes:
      topology: a slice of it, as the compiler calls it.
      flops: bfloat16 operations per second, dense.
      bandwidth: bytes per second of its memory.
      memory: bytes of its memory.
      clock: cycles per second.
      devices: devices of a chip.
    """

    topology: str
    flops: float
    bandwidth: float
    memory: float
    clock: float
    devices: int = 1


CHIPS = {
    "v5e": Chip("v5e:2x2", 197e12, 819e9, 16e9, 1.5e9),
    "v4": Chip("v4:2x2x1", 137.5e12, 614e9, 16e9, 1.05e9, devices=2),
    "v5p": Chip("v5p:2x2x1", 459e12, 2765e9, 95e9, 1.75e9),
    "v6e": Chip("v6e:2x2", 918e12, 1640e9, 32e9, 1.75e9),
}
