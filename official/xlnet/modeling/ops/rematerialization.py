"""Activations that the backward pass computes again instead of keeping them."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf


def recomputed(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """`function`, of whose call only the arguments are kept for the backward pass.

    As `tf.recompute_grad`, but in order, without which little memory is saved: everything that is
    computed again waits for the gradient that needs it, also what depends on no argument; and
    gradients go on to the layer before only when those of the variables are there.

    Args:
      function: maps floating tensors to one tensor; may use variables.
    """

    @tf.custom_gradient
    def call(*tensors):
        def gradient(upstream, variables=()):
            variables = list(variables)
            with tf.control_dependencies([upstream]), tf.GradientTape() as tape:
                again = [tf.identity(x) for x in tensors]
                tape.watch(again)
                output = function(*again)
            gradients = tape.gradient(output, again + variables, upstream)
            of_tensors, of_variables = gradients[: len(again)], gradients[len(again) :]
            with tf.control_dependencies([g for g in of_variables if g is not None]):
                of_tensors = [tf.identity(g) for g in of_tensors]
            return (of_tensors, of_variables) if variables else of_tensors

        return function(*tensors), gradient

    return call
