"""Element-wise work as one compiled kernel, while matrix products stay with TensorFlow.

On a CPU, oneDNN's matrix products are faster than XLA's, and XLA's element-wise loops are faster
than TensorFlow's op by op (`docs/performance.md` has the measurements). So a training step runs as
a TensorFlow graph whose element-wise stretches are XLA kernels; op by op, a step of `small` takes
1.2 times the CPU time (`python -m benchmarks.training.forms`). Where the whole step is compiled
(`jit_compile=True`, TPU), nesting changes nothing.

A kernel belongs to a module-level function and its static arguments, so that all layers share
one: compiling takes longer than tracing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable

import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import device, has_accelerator
from official.xlnet.modeling.ops.shapes import sizes

# False in tests of other things: a kernel for each shape costs a second and 10 MB.
are_compiled = True


@functools.cache
def compiled(function: Callable, *static: Hashable) -> Callable:
    """`function(*static, *tensors)` as one XLA kernel of its tensors.

    XLA compiles anew for every shape. So calls run op by op where an axis besides the first one,
    the batch, is not static: every length would be another kernel. So do eager calls, which are
    for tests and small work.

    Args:
      function: module-level function.
      *static: its leading, non-tensor arguments. Calls share a kernel where these are
        equal.
    """
    bound = functools.partial(function, *static)

    @functools.cache
    def kernel_of(_: str, is_compiled: bool) -> Callable:
        """The kernel of one kind of device: operations may have other forms on another."""
        return tf.function(bound, jit_compile=is_compiled, autograph=False)

    def call(*tensors):
        # All sizes but the first, the batch.
        are_static = all(x.shape[1:].is_fully_defined() for x in tf.nest.flatten(tensors))
        if tf.executing_eagerly() or not are_static:
            return bound(*tensors)
        kernel = kernel_of(device(), are_compiled)
        # Grappler cannot see the shapes that a compiled kernel returns.
        return tf.nest.map_structure(lambda x: tf.ensure_shape(x, x.shape), kernel(*tensors))

    return call


@functools.cache
def fused(function: Callable, *static: Hashable) -> Callable:
    """As `compiled`, with a backward pass that recomputes `function`.

    Only the arguments are kept for the backward pass, none of the values in between.
    Integer arguments get no gradient.

    Args:
      function: module-level function that returns one tensor.
      *static: its leading, non-tensor arguments.
    """
    forward, backward = compiled(function, *static), compiled(_gradients, function, *static)

    @tf.custom_gradient
    def call(*tensors):
        def gradient(upstream):
            gradients = iter(backward(upstream, *tensors))
            return [next(gradients) if x.dtype.is_floating else None for x in tensors]

        return forward(*tensors), gradient

    return call


def row_sums(x: tf.Tensor) -> tf.Tensor:
    """Sums over the last axis, inside a kernel.

    On a CPU written as a product with ones, whose operand XLA computes on the way; for
    `tf.reduce_sum` it would write the operand to memory and read it again, and a step of `small`
    would take 1.03 times the CPU time. An accelerator fuses the sum, and a TPU would round
    the operands of the product to bfloat16.

    Args:
      x: floating [..., K].

    Returns:
      [...].
    """
    if has_accelerator():
        return tf.reduce_sum(x, axis=-1)
    return tf.linalg.matvec(x, tf.ones([sizes(x)[-1]], x.dtype))


def _gradients(function, *arguments):
    """Gradients of `function(*static, *tensors)`; arguments: static ones, upstream, tensors."""
    first = next(i for i, value in enumerate(arguments) if tf.is_tensor(value))
    static, upstream, tensors = arguments[:first], arguments[first], arguments[first + 1 :]
    differentiable = [x for x in tensors if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(differentiable)
        output = function(*static, *tensors)
    return tape.gradient(output, differentiable, upstream, unconnected_gradients="zero")
