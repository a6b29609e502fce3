"""FLOP and memory traffic of a step, by formula.

A matrix product [m, k] x [k, n] takes 2mkn FLOP. In training a product is computed up to three
times: in the forward pass, and for the gradients of its left and right operands. Element-wise
operations are not counted: they are a few percent, and an efficient step hides them. A shared block
saves parameters but no products; nor does halting save any, as all rows are computed in all steps.

`necessary` is the minimum that the equations of XLNet require: query stream at targets only,
position keys once for both directions and all rows, K distances per row, no gradient into memory.
`computed` is what our step executes. It differs in the positional scores, which are computed per
distance in blocks (see `relative_shift`) or on a TPU from factors (see `factored_position`), and in
the feed-forward width, which is padded on a CPU (see `feed_forward`).
`tests/unit/benchmarks/test_flops.py` compares it with the traced step.
"""

from __future__ import annotations

import dataclasses

from benchmarks.harness.workload import Shape
from official.xlnet.modeling.kernels.device_forms import device
from official.xlnet.modeling.kernels.matrix_products import inner_width
from official.xlnet.modeling.kernels.relative_shift import ConsecutiveRows

# Passes of a product: forward; with the gradients of both operands; of one operand.
TRAINING, FORWARD = 3, 1
ONE_GRADIENT = 2
_POSITION_KEYS = "position keys"


@dataclasses.dataclass(frozen=True)
class Product:
    """A number of equal matrix products [m, k] x [k, n].

    Attributes:
      part: part of the network.
      count: number of products in the forward pass.
      m: rows of the left operand.
      k: size of the contracted axis.
      n: columns of the right operand.
      passes: how often each is computed, including the backward pass.
    """

    part: str
    count: int
    m: int
    k: int
    n: int
    passes: int

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * self.passes * self.count * self.m * self.k * self.n

    @property
    def elements(self) -> int:
        """Elements read and written: both operands and the result, once per pass."""
        m, k, n = self.m, self.k, self.n
        return self.passes * self.count * (m * k + k * n + m * n)


def necessary(shape: Shape, training: bool = True) -> list[Product]:
    """Returns the necessary products of a training step or of an encoder forward pass.

    The position keys of the encoder do not depend on the input, so they are not counted there.

    Args:
      shape: sizes of model and batch.
      training: True for a training step, False for a forward pass without targets.
    """
    keys = shape.mem_len + shape.seq_len
    positional = _per_distance(
        shape, training, [(rows, keys) for rows in _streams(shape, training)]
    )
    products = _products(shape, training, positional)
    return [product for product in products if training or product.part != _POSITION_KEYS]


def computed(shape: Shape, training: bool = True) -> list[Product]:
    """Returns the products that our step executes; see `necessary` for the arguments."""
    keys = shape.mem_len + shape.seq_len
    # The network for inference computes per distance everywhere.
    if device() == "TPU" and training:
        return _products(shape, training, _from_factors(shape))
    blocks = ConsecutiveRows(shape.seq_len, keys)
    distances = [(blocks.block, keys + blocks.block - 1)] * blocks.num_blocks
    if training:
        distances.append((shape.num_predict, keys + shape.seq_len - 1))
        shape = dataclasses.replace(shape, d_inner=inner_width(shape.d_inner))
    return _products(shape, training, _per_distance(shape, training, distances))


def _streams(shape: Shape, training: bool) -> list[int]:
    """Rows of the content stream and, in training, of the query stream."""
    return [shape.seq_len, *([shape.num_predict] if training else [])]


def _per_distance(shape: Shape, training: bool, distances: list[tuple[int, int]]) -> list[Product]:
    """Products of positional scores per distance, for pairs of rows and distances."""
    L, D, N, B = shape.num_layers, shape.d_model, shape.num_heads, shape.batch_size
    both, one = _passes(training)
    R = shape.mem_len + 2 * shape.seq_len - 1
    return [
        Product(_POSITION_KEYS, 2 * L, R, D // 2, D, one),
        *(
            Product("scores per distance", L * B * N, rows, D // N, width, both)
            for rows, width in distances
        ),
    ]


def _from_factors(shape: Shape) -> list[Product]:
    """Products of positional scores from factors of rows and keys; those of keys are constant."""
    L, D, N, B = shape.num_layers, shape.d_model, shape.num_heads, shape.batch_size
    keys = shape.mem_len + shape.seq_len
    return [
        product
        for rows in _streams(shape, training=True)
        for product in (
            Product("factors of rows", 2 * L * N, B * rows, D // N, D // 2, TRAINING),
            Product("scores from factors", L, B * N * rows, D, keys, ONE_GRADIENT),
        )
    ]


def _passes(training: bool) -> tuple[int, int]:
    """Passes of a product where both operands get gradients, and where one does."""
    return (TRAINING, ONE_GRADIENT) if training else (FORWARD, FORWARD)


def _products(shape: Shape, training: bool, positional: list[Product]) -> list[Product]:
    L, D, N, F = shape.num_layers, shape.d_model, shape.num_heads, shape.d_inner
    B, T, M, V = shape.batch_size, shape.seq_len, shape.mem_len, shape.vocab_size
    P = shape.num_predict if training else 0
    H, K, X = D // N, M + T, T + P
    both, one = _passes(training)
    products = [
        Product("query and output projections", 2 * L, B * X, D, D, both),
        Product("keys and values of the window", 2 * L, B * T, D, D, both),
        Product("keys and values of memory", 2 * L, B * M, D, D, one),
        *positional,
        *(Product("scores per key", L * B * N, rows, H, K, both) for rows in (T, P)),
        *(Product("weighted values", L * B * N, rows, K, H, both) for rows in (T, P)),
        Product("feed-forward", L, B * X, D, F, both),
        Product("feed-forward", L, B * X, F, D, both),
        Product("halting", L if shape.depth == "adaptive" else 0, B * X, D, 1, both),
        Product("logits", 1, B * P, D, V, both),
    ]
    return [product for product in products if product.flops]


def total(products: list[Product]) -> int:
    """Returns the total FLOP of products."""
    return sum(product.flops for product in products)


def num_parameters(shape: Shape) -> int:
    """Returns the number of trainable parameters of the pre-training model."""
    L, D, F, V = shape.num_layers, shape.d_model, shape.d_inner, shape.vocab_size
    attention = 5 * D * D + 2 * D + 3 * D + 2 * D
    feed_forward = 2 * D * F + F + D + 2 * D
    num_blocks = L if shape.depth == "stacked" else 1
    halting = D + 1 if shape.depth == "adaptive" else 0
    return V * D + D + num_blocks * (attention + feed_forward) + halting + V
