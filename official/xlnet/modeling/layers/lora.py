"""LoRA (Hu et al., 2021): low-rank adapters beside frozen kernels.

With W [I, O] frozen, x·W becomes

    x·W + s·(x·L)·R,   L [I, r], R [r, O], s = 2

R starts at 0, so that a model with new adapters is the model without them. s = α / r with α = 2 r.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.configs.validation import require
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.ops.keras import Layer, keras

SCALE = 2.0  # s.

# Attributes of the layers of blocks: queries, keys, values, output, feed-forward; and of Keras.
_KERNELS = (
    "query_kernel",
    "key_kernel",
    "value_kernel",
    "output_kernel",
    "inner_kernel",
    "outer_kernel",
    "kernel",
)


class AdaptedKernel:
    """A kernel with an adapter, in the place of the kernel.

    Matrix products of this package compute x·W + s·(x·L)·R; any other operation converts it to the
    tensor W + s·L·R.

    Args:
      kernel: W, [I, O] or more axes, which are merged to these two.
      left: L, [I, r].
      right: R, [r, O].
    """

    def __init__(self, kernel: Any, left: Any, right: Any):
        self.kernel, self.left, self.right = kernel, left, right
        self.shape = kernel.shape

    def multiply(self, x: tf.Tensor, transpose: bool = False) -> tf.Tensor:
        """X · W' [..., O] with W' = W + s·L·R; with `transpose`, x · W'ᵀ for x [..., O]."""
        factors = [self.left, self.right]
        how = {"product": tf.tensordot, "axes": [[-1], [1 if transpose else 0]]}
        first, second = factors[::-1] if transpose else factors
        plain = multiply(x, tf.reshape(self.kernel, [self.left.shape[0], -1]), **how)
        return plain + SCALE * multiply(multiply(x, first, **how), second, **how)

    def padded(self, paddings: list[list[int]]) -> AdaptedKernel:
        """The kernel [I, O] with zeros around it; see `tf.pad`."""
        rows, columns = paddings
        left, right = tf.pad(self.left, [rows, [0, 0]]), tf.pad(self.right, [[0, 0], columns])
        return AdaptedKernel(tf.pad(self.kernel, paddings), left, right)

    def merged(self) -> tf.Tensor:
        """W + s·L·R."""
        change = tf.reshape(tf.matmul(self.left, self.right), self.shape)
        return self.kernel + SCALE * change

    def numpy(self) -> np.ndarray:
        """W + s·L·R."""
        return self.merged().numpy()


def _as_tensor(value: AdaptedKernel, dtype=None, name=None, as_ref=False) -> tf.Tensor:
    merged = value.merged()
    return merged if dtype is None else tf.cast(merged, dtype)


tf.register_tensor_conversion_function(AdaptedKernel, _as_tensor)


class Lora(Layer):
    """The adapters of blocks: for each a layer with the factors of its kernels.

    Args:
      blocks: the built blocks; frozen ones get no adapters.
      rank: r.
    """

    def __init__(self, blocks: Iterable[keras.layers.Layer], rank: int, **kwargs):
        super().__init__(name="lora", **kwargs)
        self.rank = rank
        places: list[tuple[Any, str, AdaptedKernel]] = []
        for block in dict.fromkeys(blocks):
            if block.trainable:
                part = Layer(name=block.name, dtype=self.dtype_policy)
                setattr(self, block.name.rpartition("/")[2], part)
                with tf.name_scope(block.name):
                    places += self._adapt(block, part)
        require(bool(places), "blocks", "trainable ones, which get adapters", "none")
        self._hidden = types.SimpleNamespace(places=places, frozen=[])  # Not parts of this layer.

    def _adapt(self, block, part) -> Iterator[tuple[Any, str, AdaptedKernel]]:
        for layer in block._flatten_layers():
            for name in _KERNELS:
                kernel = getattr(layer, name, None)
                if kernel is not None:
                    adapted = AdaptedKernel(kernel, *self._factors(layer.name, name, kernel, part))
                    _replace(layer, name, adapted)
                    yield layer, name, adapted

    def _factors(self, layer: str, name: str, kernel, part) -> list[tf.Variable]:
        shape = list(kernel.shape)
        splits = [(math.prod(shape[:n]), math.prod(shape[n:])) for n in range(1, len(shape))]
        num_rows, num_columns = min(splits, key=sum)
        start = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
        sizes = {
            "left": ([num_rows, self.rank], start),
            "right": ([self.rank, num_columns], "zeros"),
        }
        return [
            part.add_weight(name=f"{layer}_{name}_{side}", shape=size, initializer=initializer)
            for side, (size, initializer) in sizes.items()
        ]

    def freeze(self, layers: Iterable[Any]) -> None:
        """Freezes other layers, and variables of Keras 3, until the adapters are merged."""
        self._hidden.frozen += [x for x in layers if x is not self and x.trainable]
        for layer in self._hidden.frozen:
            layer.trainable = False

    def add(self) -> list[tuple[tf.Variable, np.ndarray]]:
        """Adds the adapters to the kernels; returns these, with their former values."""
        kernels = []
        for _, _, adapted in self._hidden.places:
            kernels.append((adapted.kernel, adapted.kernel.numpy()))
            adapted.kernel.assign(adapted.merged())
        return kernels

    def merge(self) -> None:
        """Adds the adapters to the kernels, whose places they leave.

        Graphs that were traced before compute the same, as R is 0 now.
        """
        self.add()
        for layer, name, adapted in self._hidden.places:
            adapted.right.assign(tf.zeros_like(adapted.right))
            _replace(layer, name, adapted.kernel)
        for layer in self._hidden.frozen:
            layer.trainable = True


def _replace(layer: keras.layers.Layer, name: str, value: Any) -> None:
    """Replaces an attribute; Keras would no longer save the variable."""
    object.__setattr__(layer, name, value)
