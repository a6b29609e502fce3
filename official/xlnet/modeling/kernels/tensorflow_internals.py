"""Uses of TensorFlow's private modules, which nothing else imports.

Custom gradients are freed with the graph they belong to. In a graph, every call of a
`tf.custom_gradient` function adds its backward pass to a global registry of TensorFlow, which
nothing removes: it keeps the graph, and with it the model, for as long as the process runs.
TensorFlow's own `all_reduce` and Keras' optimizers do so too. In a graph with a kernel of ours, the
operation holds its backward pass, and the registry only refers to it, for as long as it exists.
Graphs of others are left as they are: their programs may import a copy of a graph that is gone.

AutoGraph leaves this package as it is, as it does TensorFlow and Keras: there is no Python control
flow over tensors here, and rewriting each function takes time before the first step. Layers and
models of users, subclasses of this package's classes too, are converted as ever.
"""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.python.autograph.core import config
from tensorflow.python.framework import ops
from tensorflow.python.ops import control_flow_util, custom_gradient

T = TypeVar("T")
_register = custom_gradient._graph_mode_decorator
_with_our_kernels: weakref.WeakSet[tf.Graph] = weakref.WeakSet()
# Names of the custom gradients of graphs that have no kernel of ours yet.
_registered_before: weakref.WeakKeyDictionary[tf.Graph, set[str]] = weakref.WeakKeyDictionary()
_has_gradients = contextvars.ContextVar("has_gradients", default=True)


def is_compiled() -> bool:
    """Returns whether XLA compiles the graph under construction."""
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def optimization_barrier(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the tensors, each computed after all of them; only where XLA compiles the graph."""
    return gen_xla_ops.xla_optimization_barrier(tensors)


def without_custom_gradients(trace: Callable[[], T]) -> T:
    """The result of a function that traces graphs which nobody differentiates, as in an export.

    TensorFlow warns of custom gradients when it loads them.

    Example:
      >>> signatures = without_custom_gradients(service.signatures)
    """
    context = contextvars.copy_context()
    context.run(_has_gradients.set, False)
    return context.run(trace)


def _and_outer(graph: tf.Graph | None) -> Iterator[tf.Graph]:
    """Yields a graph and the graphs that call it."""
    while graph is not None:
        yield graph
        graph = getattr(graph, "outer_graph", None)


def _freed_with_graph(function, arguments, keywords):
    """Calls a function with a custom gradient in a graph."""
    if not _has_gradients.get():
        return function(*arguments, **keywords)[0]
    graph = tf.compat.v1.get_default_graph()
    if function.__module__.startswith("official.xlnet."):
        for with_our_kernel in _and_outer(graph):
            _with_our_kernels.add(with_our_kernel)
            _free_earlier(with_our_kernel)
    outputs = _register(function, arguments, keywords)
    tensors = tf.nest.flatten(outputs, expand_composites=True)
    if tensors and tensors[0].op.type == "IdentityN":
        if graph in _with_our_kernels:
            _free_with_graph(tensors[0].op)
        else:
            _registered_before.setdefault(graph, set()).add(_gradient_name(tensors[0].op))
    return outputs


def _free_earlier(graph: tf.Graph) -> None:
    """Frees the gradients that a graph had before it had a kernel of ours: some are of Keras.

    Those of operations that are copies from another graph stay as they are.
    """
    names = _registered_before.pop(graph, set())
    for operation in graph.get_operations() if names else ():
        if operation.type == "IdentityN" and _gradient_name(operation) in names:
            names.remove(_gradient_name(operation))
            _free_with_graph(operation)


def _gradient_name(operation: tf.Operation) -> str:
    """The name of an operation's custom gradient; empty if it has none."""
    return operation.node_def.attr["_gradient_op_type"].s.decode()


def _free_with_graph(operation: tf.Operation) -> None:
    """Lets the custom gradient of an operation live as long as its graph.

    TensorFlow registers it by name for the rest of the process, with all that it refers to.
    """
    name = _gradient_name(operation)
    entries = ops.gradient_registry._registry
    gradient = operation._gradient_function = entries[name]["type"]
    reference: Callable = weakref.ref(gradient)
    entries[name]["type"] = lambda *arguments: reference()(*arguments)
    weakref.finalize(gradient, entries.pop, name)


custom_gradient._graph_mode_decorator = _freed_with_graph
config.CONVERSION_RULES = (config.DoNotConvert("official.xlnet"), *config.CONVERSION_RULES)
