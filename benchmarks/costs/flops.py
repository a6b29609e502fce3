"""What a step has to compute and to move, as formulas.

A matrix product [m, k] x [k, n] takes 2mkn operations (a multiplication and an addition each).
In training a product is computed up to three times: forward, for the gradient of its left and
for that of its right operand. Element-wise work is not counted: it is a few per cent of the
operations, and a fast step hides it.

`necessary` is the least that XLNet's equations ask for: query rows at targets only, position
keys once for both directions and all rows, K distances a row, no gradient into memory. `computed`
is what our step does: it differs in the scores per distance, which are products of whole blocks
(see `relative_shift`), and in inner rows, which are slightly longer on a CPU (see
`feed_forward`). `tests/unit/benchmarks/test_flops.py` holds the step to it.
"""

from __future__ import annotations

import dataclasses

from benchmarks.harness.workload import Shape
from official.xlnet.modeling.layers.feed_forward import inner_width
from official.xlnet.modeling.layers.relative_shift import ConsecutiveRows

TRAINING, FORWARD = 3, 1
# Forward and the gradient of one operand: the other one is data.
ONE_GRADIENT = 2
_POSITION_KEYS = "position keys"


@dataclasses.dataclass(frozen=True)
class Product:
    """Equal matrix products [m, k] x [k, n].

    Attributes:
      part: what they are for.
      count: how many there are, in one pass.
      m, k, n: their sizes.
      passes: how often each is computed, the products of the backward pass included.
    """

    part: str
    count: int
    m: int
    k: int
    n: int
    passes: int

    @property
    def flops(self) -> int:
        """Operations."""
        return 2 * self.passes * self.count * self.m * self.k * self.n

    @property
    def elements(self) -> int:
        """Elements read and written: both operands and the result, once a pass."""
        m, k, n = self.m, self.k, self.n
        return self.passes * self.count * (m * k + k * n + m * n)


def necessary(shape: Shape, training: bool = True) -> list[Product]:
    """The products of a training step or, without targets, of the encoder alone.

    The encoder's position keys do not depend on the text, so it needs to compute none.
    """
    keys = shape.mem_len + shape.seq_len
    streams = [shape.seq_len, *([shape.num_predict] if training else [])]
    products = _products(shape, training, [(rows, keys) for rows in streams])
    return [product for product in products if training or product.part != _POSITION_KEYS]


def computed(shape: Shape, training: bool = True) -> list[Product]:
    """As `necessary`, with the scores per distance and the inner rows that our step computes."""
    keys = shape.mem_len + shape.seq_len
    blocks = ConsecutiveRows(shape.seq_len, keys)
    distances = [(blocks.block, keys + blocks.block - 1)] * blocks.num_blocks
    if training:
        distances.append((shape.num_predict, keys + shape.seq_len - 1))
        shape = dataclasses.replace(shape, d_inner=inner_width(shape.d_inner))
    return _products(shape, training, distances)


def _products(shape: Shape, training: bool, distances: list[tuple[int, int]]) -> list[Product]:
    L, D, N, F = shape.num_layers, shape.d_model, shape.num_heads, shape.d_inner
    B, T, M, V = shape.batch_size, shape.seq_len, shape.mem_len, shape.vocab_size
    P = shape.num_predict if training else 0
    H, K, X = D // N, M + T, T + P
    both = TRAINING if training else FORWARD
    one = ONE_GRADIENT if training else FORWARD
    products = [
        Product("query and output projections", 2 * L, B * X, D, D, both),
        Product("keys and values of the window", 2 * L, B * T, D, D, both),
        Product("keys and values of memory", 2 * L, B * M, D, D, one),
        Product(_POSITION_KEYS, 2 * L, K + T - 1, D // 2, D, one),
        *(Product("scores per key", L * B * N, rows, H, K, both) for rows in (T, P)),
        *(
            Product("scores per distance", L * B * N, rows, H, width, both)
            for rows, width in distances
        ),
        *(Product("weighted values", L * B * N, rows, K, H, both) for rows in (T, P)),
        Product("feed-forward", L, B * X, D, F, both),
        Product("feed-forward", L, B * X, F, D, both),
        Product("logits", 1, B * P, D, V, both),
    ]
    return [product for product in products if product.flops]


def total(products: list[Product]) -> int:
    """Operations of all products."""
    return sum(product.flops for product in products)


def by_part(products: list[Product]) -> dict[str, int]:
    """Operations of each part."""
    parts: dict[str, int] = {}
    for product in products:
        parts[product.part] = parts.get(product.part, 0) + product.flops
    return parts


def num_parameters(shape: Shape) -> int:
    """Trained numbers of the pre-training model."""
    L, D, F, V = shape.num_layers, shape.d_model, shape.d_inner, shape.vocab_size
    attention = 5 * D * D + 2 * D + 3 * D + 2 * D
    feed_forward = 2 * D * F + F + D + 2 * D
    return V * D + D + L * (attention + feed_forward) + V


def step_bytes(shape: Shape, compute_size: int = 4) -> dict[str, int]:
    """Bytes that a training step moves at least, each operand of a product once a pass.

    Args:
      shape: model and batch.
      compute_size: bytes of an activation: 4 in float32, 2 in bfloat16.

    Returns:
      products: operands and results.
      optimizer: gradient norm (read g), update (read g, w, m, v; write w, m, v), in float32.
    """
    elements = sum(product.elements for product in necessary(shape))
    return {
        "products": compute_size * elements,
        "optimizer": 4 * 8 * num_parameters(shape),
    }
