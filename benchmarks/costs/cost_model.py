"""Cost model: comparison of the formulas with XLA, and roofline predictions of throughput."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from benchmarks.costs import flops
from benchmarks.harness.workload import SMALL, Shape

# Two layers of `small`, for a short compilation; all layers have the same products.
CHECKED = dataclasses.replace(SMALL, num_layers=2)

BASE = Shape(12, 768, 12, 3072, 32000, 512, 384, 256, 85, 16)
LARGE = Shape(24, 1024, 16, 4096, 32000, 512, 384, 256, 85, 16)


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """Published peak throughput of one chip.

    Attributes:
      name: name of the chip.
      flops: peak dense bfloat16 FLOP/s.
      bandwidth: memory bandwidth in bytes per second.
    """

    name: str
    flops: float
    bandwidth: float


ACCELERATORS = (
    Accelerator("TPU v3", 123e12, 900e9),
    Accelerator("TPU v4", 275e12, 1200e9),
    Accelerator("H100 SXM", 989e12, 3350e9),
)
# Model FLOP utilization (MFU) of transformer training is a third to a half; this is the low end.
ASSUMED_SHARE = 1 / 3


def predict(shape: Shape, chip: Accelerator) -> dict[str, float]:
    """Predicts the tokens per second of a bfloat16 training step on one chip (roofline model).

    Args:
      shape: sizes of model and batch.
      chip: the chip.

    Returns:
      A dictionary with
        bound: roofline bound, from max(FLOP / peak, bytes / bandwidth).
        expected: at a third of peak FLOP/s, or the bandwidth bound if that is lower.
    """
    operations = flops.total(flops.necessary(shape))
    moving = sum(flops.step_bytes(shape, compute_size=2).values()) / chip.bandwidth
    computing = operations / chip.flops
    return {
        "bound": shape.tokens / max(computing, moving),
        "expected": shape.tokens / max(computing / ASSUMED_SHARE, moving),
    }


def check_against_xla() -> dict[str, Any]:
    """Compares FLOP and memory traffic of a step: formula, traced graph and XLA.

    Returns:
      A dictionary with
        formula_flops, graph_flops, xla_flops: FLOP of matrix products.
        formula_elements, xla_elements: elements that they read and write.
        formula_bytes: total of `flops.step_bytes`.
        xla_bytes: bytes of all instructions of the optimized HLO.
    """
    import tensorflow as tf

    from benchmarks.costs.count import bytes_of_hlo, products_of, products_of_hlo
    from benchmarks.harness.workload import config_of
    from benchmarks.training.ours import pretrainer

    model, batch = pretrainer(CHECKED, config_of(CHECKED))
    graph = tf.function(model.train_step).get_concrete_function(batch).graph
    compiled = tf.function(model.train_step, jit_compile=True)
    hlo = compiled.experimental_get_compiler_ir(batch)(stage="optimized_hlo")
    dots = list(products_of_hlo(hlo))
    formula = flops.computed(CHECKED)
    return {
        "formula_flops": flops.total(formula),
        "graph_flops": sum(product.flops for product in products_of(graph)),
        "xla_flops": sum(dot.flops for dot in dots),
        "formula_elements": sum(product.elements for product in formula),
        "xla_elements": sum(math.prod(shape) for dot in dots for shape in dot.shapes),
        "formula_bytes": sum(flops.step_bytes(CHECKED).values()),
        "xla_bytes": bytes_of_hlo(hlo),
    }
