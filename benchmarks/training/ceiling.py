"""The matmul ceiling: peak FLOP/s of TensorFlow's matrix multiplication at our shapes."""

from __future__ import annotations

import time

import tensorflow as tf

from benchmarks.harness.worker import Work

# Feed-forward and logits of `base3`, feed-forward of `small`, and a square.
SHAPES = ((1024, 768, 3072), (170, 768, 32000), (2048, 256, 1024), (1024, 1024, 1024))
REPEATS = 4


def build() -> Work:
    """Builds a workload whose value is matmul FLOP/s."""
    operands = [(tf.random.normal([m, k]), tf.random.normal([k, n])) for m, k, n in SHAPES]

    @tf.function
    def product(left, right):
        return tf.matmul(left, right)[0, 0]

    def run() -> float:
        best = 0.0
        for (left, right), (m, k, n) in zip(operands, SHAPES, strict=True):
            for _ in range(REPEATS):
                start = time.perf_counter()
                product(left, right).numpy()
                best = max(best, 2 * m * k * n / (time.perf_counter() - start))
        return best

    return Work(run)
