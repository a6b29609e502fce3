"""Element-wise work as one compiled kernel, while matrix products stay with TensorFlow.

On a CPU, oneDNN's matrix products are faster than XLA's, and XLA's element-wise loops are
faster than TensorFlow's op by op (`docs/performance.md` has the measurements). `fused` gives
each its part: a training step runs as a TensorFlow graph whose element-wise stretches are XLA
kernels. Where the whole step is compiled (`jit_compile=True`, TPU), nesting changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf


def compiled(function: Callable) -> Callable:
    """`function` of tensors as one XLA kernel; for element-wise work with static shapes.

    Eager calls run op by op: they are for tests and small work, where compiling costs more
    than it saves.
    """
    kernel = tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*args):
        if tf.executing_eagerly():
            return function(*args)
        # Grappler cannot see the shapes that a compiled kernel returns.
        return tf.nest.map_structure(lambda x: tf.ensure_shape(x, x.shape), kernel(*args))

    return call


def fused(function: Callable) -> Callable:
    """`function` of tensors as one XLA kernel, with a backward pass that recomputes it.

    Only the arguments are kept for the backward pass, none of the values in between.
    Integer arguments get no gradient.

    Args:
      function: maps tensors of static shape to one tensor, without variables or state.
    """

    def backward(upstream, *args):
        differentiable = [arg for arg in args if arg.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(differentiable)
            output = function(*args)
        gradients = iter(
            tape.gradient(output, differentiable, upstream, unconnected_gradients="zero")
        )
        return [next(gradients) if arg.dtype.is_floating else None for arg in args]

    forward_kernel, backward_kernel = compiled(function), compiled(backward)

    @functools.wraps(function)
    @tf.custom_gradient
    def call(*args):
        return forward_kernel(*args), lambda upstream: backward_kernel(upstream, *args)

    return call
