"""Activations that the backward pass computes again instead of keeping them.

What it earns: a step of base with 8 rows takes 80% of the peak memory and 1.12 times as long when
attention is recomputed, 48% and 1.52 times when whole blocks are (docs/performance.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import device
from official.xlnet.modeling.kernels.tensorflow_internals import is_compiled, optimization_barrier


def recomputed(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`function`, of whose call only the arguments are kept for the backward pass.

    As `tf.recompute_grad`, but in order, without which little memory is saved: everything that is
    computed again waits for the gradient that needs it, even values that depend on no argument; and
    gradients reach the layer before only after the gradients of the variables.

    Args:
      function: maps tensors to one tensor; may use variables. Seeds are among its arguments: XLA
        keeps a mask that would be drawn again from the same seed.
    """

    @tf.custom_gradient
    def call(*tensors):
        def gradient(upstream, variables=()):
            variables = list(variables)
            with tf.control_dependencies([upstream]), tf.GradientTape() as tape:
                upstream, again = used_after(upstream, tensors)
                tape.watch([x for x in again if x.dtype.is_floating])
                output = function(*again)
            gradients = tape.gradient(output, again + variables, upstream)
            of_tensors, of_variables = gradients[: len(again)], gradients[len(again) :]
            with tf.control_dependencies([g for g in of_variables if g is not None]):
                of_tensors = [g if g is None else tf.identity(g) for g in of_tensors]
            return (of_tensors, of_variables) if variables else of_tensors

        return function(*tensors), gradient

    return call


def used_after(first: tf.Tensor, tensors: Sequence[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """`first` and `tensors`, for values that must be computed again once `first` has been computed.

    Identities with a control dependency, which XLA would see through: it would keep the values
    that were computed first. So a step that is compiled has an optimization barrier. XLA drops
    what nobody reads from a barrier, so `first` is to be read from it, too.
    """
    if is_compiled():
        first, *later = optimization_barrier([first, *tensors])
        return first, later
    with tf.control_dependencies([first]):
        return first, [tf.identity(x) for x in tensors]


def computed_once(x: tf.Tensor) -> tf.Tensor:
    """`x`, which a step that is compiled for a GPU computes once and writes to memory.

    XLA computes values again in each kernel that reads them where it takes that to be cheaper.
    """
    return optimization_barrier([x])[0] if device() == "GPU" and is_compiled() else x
