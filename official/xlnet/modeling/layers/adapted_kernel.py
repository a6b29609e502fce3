"""A kernel with a low-rank adapter (LoRA), in the place of the kernel of a layer.

With W [I, O] frozen, x·W becomes

    x·W + s·(dropout(x)·L)·R,   L [I, r], R [r, O]
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.kernels.stateless_dropout import dropout, fold_in

_ADAPTERS = 1_000  # The seed of a block's adapters is fold_in(seed of the block, _ADAPTERS + n).


@dataclasses.dataclass
class _DropoutSeeds:
    """Seeds of the products of one call of a block, numbered in the order of the products."""

    seed: tf.Tensor
    numbers: Iterator[int]


_seeds: contextvars.ContextVar[_DropoutSeeds | None] = contextvars.ContextVar(
    "_seeds", default=None
)


@contextlib.contextmanager
def adapter_dropout(seed: tf.Tensor | None) -> Iterator[None]:
    """Context manager: adapters drop their inputs, by a seed int32 [2]; None for no dropout."""
    seeds = None if seed is None else _DropoutSeeds(seed, itertools.count(_ADAPTERS))
    token = _seeds.set(seeds)
    try:
        yield
    finally:
        _seeds.reset(token)


class AdaptedKernel:
    """A kernel with an adapter, in the place of the kernel.

    Matrix products of this package compute x·W + s·(dropout(x)·L)·R; any other operation converts
    it to the tensor W + s·L·R.

    Args:
      kernel: W, [I, O] or more axes, which are merged to these two.
      left: L, [I, r].
      right: R, [r, O].
      scale: s.
      dropout_rate: dropout rate of the adapter's input, inside `adapter_dropout`.
    """

    def __init__(
        self, kernel: Any, left: Any, right: Any, scale: float = 2.0, dropout_rate: float = 0.0
    ):
        self.kernel, self.left, self.right = kernel, left, right
        self.scale, self.dropout_rate = scale, dropout_rate
        self.shape = kernel.shape

    def multiply(self, x: tf.Tensor, transpose: bool = False) -> tf.Tensor:
        """X · W' [..., O] with W' = W + s·L·R; with `transpose`, x · W'ᵀ for x [..., O]."""
        factors = [self.left, self.right]
        how = {"product": tf.tensordot, "axes": [[-1], [1 if transpose else 0]]}
        first, second = factors[::-1] if transpose else factors
        plain = multiply(x, tf.reshape(self.kernel, [self.left.shape[0], -1]), **how)
        dropped = self._dropped(x)
        return plain + self.scale * multiply(multiply(dropped, first, **how), second, **how)

    def _dropped(self, x: tf.Tensor) -> tf.Tensor:
        """The input of the adapter, with dropout in training."""
        seeds = _seeds.get()
        if not self.dropout_rate or seeds is None:
            return x
        return dropout(x, self.dropout_rate, fold_in(seeds.seed, next(seeds.numbers)))

    def padded(self, paddings: list[list[int]]) -> AdaptedKernel:
        """The kernel [I, O] with zeros around it; see `tf.pad`."""
        rows, columns = paddings
        left, right = tf.pad(self.left, [rows, [0, 0]]), tf.pad(self.right, [[0, 0], columns])
        kernel = tf.pad(self.kernel, paddings)
        return AdaptedKernel(kernel, left, right, self.scale, self.dropout_rate)

    def merged(self) -> tf.Tensor:
        """W + s·L·R."""
        change = tf.reshape(tf.matmul(self.left, self.right), self.shape)
        return self.kernel + self.scale * change

    def numpy(self) -> np.ndarray:
        """W + s·L·R."""
        return self.merged().numpy()


def _as_tensor(value: AdaptedKernel, dtype=None, name=None, as_ref=False) -> tf.Tensor:
    if value.dropout_rate and _seeds.get() is not None:
        raise ConfigError(
            "dropout of adapters: expected a product of this package, got an operation that reads "
            "the whole kernel, as attention does in float64, with return_attention_scores, and "
            "with a number of tokens that is unknown when the graph is built"
        )
    merged = value.merged()
    return merged if dtype is None else tf.cast(merged, dtype)


tf.register_tensor_conversion_function(AdaptedKernel, _as_tensor)
