"""Compiled kernels are shared: compiling takes longer than tracing."""

import numpy as np
import tensorflow as tf

from official.xlnet.modeling.kernels.xla_kernels import compiled, row_sums
from tests.helpers.tiny import random_inputs, tiny_encoder


def number_of_kernels(num_layers):
    encoder = tiny_encoder(num_layers=num_layers, dropout=0.1, dropatt=0.1)
    inputs = {name: tf.constant(value) for name, value in random_inputs(0).items()}

    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(encoder(inputs, training=True)["query"])
        return tape.gradient(loss, encoder.trainable_variables)

    graph = tf.function(step, autograph=False).get_concrete_function(inputs).graph
    return len(graph.as_graph_def().library.function)


def test_layers_share_their_kernels():
    assert number_of_kernels(1) == number_of_kernels(3) > 10


def double(x):
    return 2 * x


def test_only_the_batch_may_be_unknown():
    """XLA compiles anew for each shape: other sizes that are unknown run op by op."""
    kernel = compiled(double)

    def kernels_with(*shape):
        spec = tf.TensorSpec(shape, tf.float32)
        graph = tf.function(kernel).get_concrete_function(spec).graph
        return len(graph.as_graph_def().library.function)

    assert kernels_with(3, 5) == kernels_with(None, 5) == 1
    assert kernels_with(3, None) == 0


def test_row_sums():
    x = np.random.default_rng(0).standard_normal([3, 5, 7]).astype(np.float32)
    np.testing.assert_allclose(row_sums(tf.constant(x)), x.sum(-1), atol=1e-5)
