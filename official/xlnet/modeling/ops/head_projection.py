"""Projections between hidden states and attention heads.

Each is the einsum in its docstring, written as one matrix product of merged axes and one
transposition: on a CPU that is up to a sixth faster than `tf.einsum`.
"""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.modeling.ops.shapes import sizes


def to_heads(x_BXD: tf.Tensor, kernel_DNH: tf.Tensor) -> tf.Tensor:
    """einsum("bxd,dnh->bnxh")."""
    d_model, heads, d_head = kernel_DNH.shape
    projected = tf.tensordot(x_BXD, tf.reshape(kernel_DNH, [d_model, heads * d_head]), axes=1)
    projected_BXNH = tf.reshape(projected, [-1, sizes(x_BXD)[1], heads, d_head])
    return tf.transpose(projected_BXNH, [0, 2, 1, 3])


def from_heads(x_BNXH: tf.Tensor, kernel_DNH: tf.Tensor) -> tf.Tensor:
    """einsum("bnxh,dnh->bxd")."""
    d_model, heads, d_head = kernel_DNH.shape
    merged = tf.reshape(tf.transpose(x_BNXH, [0, 2, 1, 3]), [-1, heads * d_head])
    kernel = tf.reshape(kernel_DNH, [d_model, heads * d_head])
    projected = tf.matmul(merged, kernel, transpose_b=True)
    return tf.reshape(projected, [-1, sizes(x_BNXH)[2], d_model])
