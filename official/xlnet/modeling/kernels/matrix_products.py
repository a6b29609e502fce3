"""Matrix products in the arrangement that is fastest, or correct, on a CPU.

The projections to and from heads are the einsum in their docstrings, written as one product of
merged axes and one transposition, which stored matrices need. With `tf.einsum`, a training step
takes the same CPU time (`python -m benchmarks.training.forms`).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import has_accelerator
from official.xlnet.modeling.kernels.product_type import multiply
from official.xlnet.modeling.ops.shapes import sizes

# A CPU's cache keeps rows that are a multiple of 4 kB apart in the same few places, and products
# that sum over such rows run at half speed. Rows that are one cache line longer do not collide:
# without them, a training step of `small` takes 1.11 times the CPU time.
_PAGE_BYTES, _LINE_BYTES = 4096, 64


@runtime_checkable
class Multiplier(Protocol):
    """A matrix [I, O], or a kernel of heads, with a product of its own."""

    shape: tf.TensorShape

    def multiply(self, x: tf.Tensor, transpose: bool = False) -> tf.Tensor:
        """X · W [..., O]; with `transpose`, x · Wᵀ for x [..., O]."""


def product(x_BXI: tf.Tensor, kernel_IO: tf.Tensor | Multiplier) -> tf.Tensor:
    """einsum("bxi,io->bxo")."""
    if isinstance(kernel_IO, Multiplier):
        return kernel_IO.multiply(x_BXI)
    return multiply(x_BXI, kernel_IO, tf.tensordot, axes=1)


def to_heads(x_BXD: tf.Tensor, kernel_DNH: tf.Tensor | Multiplier) -> tf.Tensor:
    """einsum("bxd,dnh->bnxh")."""
    d_model, heads, d_head = kernel_DNH.shape
    if not isinstance(kernel_DNH, Multiplier):
        kernel_DNH = tf.reshape(kernel_DNH, [d_model, heads * d_head])
    projected = product(x_BXD, kernel_DNH)
    projected_BXNH = tf.reshape(projected, [-1, sizes(x_BXD)[1], heads, d_head])
    return tf.transpose(projected_BXNH, [0, 2, 1, 3])


def from_heads(x_BNXH: tf.Tensor, kernel_DNH: tf.Tensor | Multiplier) -> tf.Tensor:
    """einsum("bnxh,dnh->bxd")."""
    d_model, heads, d_head = kernel_DNH.shape
    merged = tf.reshape(tf.transpose(x_BNXH, [0, 2, 1, 3]), [-1, heads * d_head])
    if isinstance(kernel_DNH, Multiplier):
        projected = kernel_DNH.multiply(merged, transpose=True)
    else:
        kernel = tf.reshape(kernel_DNH, [d_model, heads * d_head])
        projected = multiply(merged, kernel, transpose_b=True)
    return tf.reshape(projected, [-1, sizes(x_BNXH)[2], d_model])


def distance_scores(query: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Dot products of query rows [..., Q, H] with positions [..., R, H], [..., Q, R].

    Where all leading axes of `position` are 1, as with one head and no reversed rows, two
    matrices are multiplied: TensorFlow 2.20 with oneDNN gives wrong values, or crashes, when it
    broadcasts such an operand (tensorflow issue 117700).
    """
    if all(size == 1 for size in position.shape[:-2]):
        position_RH = tf.reshape(position, sizes(position)[-2:])
        return multiply(query, position_RH, tf.tensordot, axes=[[-1], [-1]])
    return multiply(query, position, transpose_b=True)


def inner_width(d_inner: int, dtype: tf.DType = tf.float32) -> int:
    """Width of inner rows, in training and as served: d_inner, or slightly more on a CPU."""
    if d_inner * dtype.size % _PAGE_BYTES or has_accelerator():
        return d_inner
    return d_inner + _LINE_BYTES // dtype.size
