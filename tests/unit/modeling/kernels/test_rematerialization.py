"""Activations that are computed again: gradients, and the order of the backward pass."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.kernels.device_forms import DEVICES, built_for
from official.xlnet.modeling.kernels.rematerialization import recomputed
from tests.helpers.compiled import make_model
from tests.helpers.graphs import above
from tests.helpers.tiny import random_windows


def make(calls):
    rng = np.random.default_rng(0)
    kernel = tf.Variable(rng.normal(size=(5, 7)), dtype=tf.float32)
    beside = tf.constant(rng.normal(size=7), tf.float32)  # Known to the function, no argument.

    def function(x, y):
        calls.append(1)
        return tf.tanh(x @ kernel + tf.exp(beside)) * y

    arguments = [tf.constant(rng.normal(size=(3, n)), tf.float32) for n in (5, 7)]
    return function, arguments, kernel


def gradients(function, arguments, kernel):
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        loss = tf.reduce_sum(tf.square(function(*arguments)))
    return tape.gradient(loss, [*arguments, kernel])


def test_gradients_are_those_of_the_function():
    function, arguments, kernel = make([])
    expected = gradients(function, arguments, kernel)

    def run():
        return gradients(recomputed(function), arguments, kernel)

    for actual in (run(), tf.function(run)()):
        for left, right in zip(actual, expected, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


def graph_of_gradients():
    function, arguments, kernel = make([])

    @tf.function
    def step(x, y):
        return gradients(recomputed(function), [x, y], kernel)

    return step.get_concrete_function(*arguments).graph


@pytest.mark.parametrize("kind", ["Tanh", "Exp"])
def test_what_is_computed_again_waits_for_its_gradient(kind):
    operations = graph_of_gradients().get_operations()
    result, _ = (op for op in operations if op.type == "Tanh")
    _, again = (op for op in operations if op.type == kind)
    assert result in above(again)


def test_what_comes_before_waits_for_the_gradients_of_variables():
    *of_arguments, of_kernel = graph_of_gradients().structured_outputs
    for gradient in of_arguments:
        assert of_kernel.op.inputs[0].op in above(gradient.op)


@pytest.mark.parametrize("kind", DEVICES)
def test_a_compiled_step_has_a_barrier(kind):
    """Without it XLA would find that both are the same, and keep the first."""
    function, arguments, kernel = make([])
    expected = gradients(function, arguments, kernel)

    def run():
        return gradients(recomputed(function), arguments, kernel)

    with built_for(kind):
        step = tf.function(run, jit_compile=True)
        hlo = step.experimental_get_compiler_ir()(stage="hlo")
        actual = step()
    assert "opt-barrier" in hlo
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_all_of_a_barrier_is_read():
    """XLA drops the rest, and with it the order."""
    settings = {"dropout": 0.1, "dropatt": 0.1, "num_layers": 2, "mem_len": 0}
    for recompute in ("attention", "block"):
        with built_for("GPU"):
            model = make_model(recompute=recompute, **settings)
            step = tf.function(model.train_step, jit_compile=True)
            graph = step.get_concrete_function(random_windows(0)).graph
        barriers = [op for op in graph.get_operations() if op.type == "XlaOptimizationBarrier"]
        assert len(barriers) > 2 * settings["num_layers"]
        for barrier in barriers:
            assert all(output.consumers() for output in barrier.outputs), barrier.name
