"""A step with products in bfloat16 beside one in float32, in turns: wall-clock time of each.

    python -m benchmarks.training.products --shape=base3
    python -m benchmarks.training.products --shape=base3 --kind=serve

The first line says which instructions the CPU has. Without `avx512_bf16` or `amx_bf16` nothing is
timed, as TensorFlow then rounds to bfloat16 and multiplies in float32.
"""

from __future__ import annotations

import dataclasses
import json
import re
import statistics
import time
from collections.abc import Callable

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.workload import SHAPES
from benchmarks.training import ours
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.modeling.kernels import product_type
from official.xlnet.modeling.kernels.product_type import matmul_precision


def _timed(kind: str, shape: str, products: str) -> Callable[[], float]:
    """Returns a function that runs a step and returns its wall-clock time, in seconds."""
    with matmul_precision(products):
        run = ours.build(kind, dataclasses.asdict(SHAPES[shape])).run
        run(), run()  # Traced and compiled.

    def seconds() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return seconds


def main() -> None:
    """Prints the CPU's instructions, and the times if it has those for bfloat16."""
    options = parse(
        __doc__,
        shape=flag("small", "sizes of model and batch", choices=sorted(SHAPES)),
        kind=flag("pretrain", "what is run", choices=["pretrain", "finetune", "encode", "serve"]),
        rounds=flag(12, "steps of each type"),
    )
    with open(product_type.CPU_FLAGS, encoding="utf-8") as file:
        flags = sorted(set(re.findall(r"\b(?:avx2|avx512f|amx_tile|\w+_bf16)\b", file.read())))
    multiplies = product_type.cpu_multiplies_bfloat16()
    print(json.dumps({"cpu": flags, "multiplies_bfloat16": multiplies}), flush=True)
    if not multiplies:
        print("This CPU has neither avx512_bf16 nor amx_bf16: nothing can be measured here.")
        return
    steps = [_timed(options.kind, options.shape, products) for products in PRODUCTS]
    times = [[step() for step in steps] for _ in range(options.rounds)]
    plain, rounded = zip(*times, strict=True)
    row = {
        "shape": options.shape,
        "kind": options.kind,
        "float32_seconds": round(statistics.median(plain), 3),
        "bfloat16_seconds": round(statistics.median(rounded), 3),
        "times_as_fast": round(statistics.median(a / b for a, b in times), 3),
        "fastest": round(min(plain) / min(rounded), 3),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    main()
