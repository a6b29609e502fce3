"""Custom gradients that are freed with the graph they belong to.

In a graph, every call of a `tf.custom_gradient` function adds its backward pass to a global
registry of TensorFlow, which nothing removes: it keeps the graph, and with it the model, for as
long as the process runs. TensorFlow's own `all_reduce` and Keras' optimizers do so too. Importing
this module makes the operation hold its backward pass; the registry only refers to it, for as long
as it exists.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import custom_gradient

_register = custom_gradient._graph_mode_decorator


def _freed_with_graph(function, arguments, keywords):
    """Calls a function with a custom gradient in a graph; there is no public way to do this."""
    outputs = _register(function, arguments, keywords)
    tensors = tf.nest.flatten(outputs, expand_composites=True)
    if tensors and tensors[0].op.type == "IdentityN":
        operation = tensors[0].op
        name = operation.get_attr("_gradient_op_type").decode()
        entries = ops.gradient_registry._registry
        gradient = operation._gradient_function = entries[name]["type"]
        reference: Callable = weakref.ref(gradient)
        entries[name]["type"] = lambda *arguments: reference()(*arguments)
        weakref.finalize(gradient, entries.pop, name)
    return outputs


custom_gradient._graph_mode_decorator = _freed_with_graph
