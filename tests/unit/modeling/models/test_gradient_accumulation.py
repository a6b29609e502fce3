"""Slices of a batch, one after the other; `test_training_step` has what they add up to."""

import tensorflow as tf

from official.xlnet.modeling.models.gradient_accumulation import accumulate
from official.xlnet.modeling.objectives.base import ObjectiveBatch
from tests.helpers.graphs import above


def test_a_slice_begins_when_the_one_before_is_done():
    """Else their activations would be in memory together, and nothing would be saved."""
    kernel = tf.Variable(tf.random.normal([5, 3]))

    def gradients(task, seed):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(task.mask_BP @ kernel))
        return tape.gradient(loss, [kernel]), loss, None

    @tf.function
    def step(mask_BP):
        task = ObjectiveBatch({}, tf.zeros([6, 5], tf.int32), mask_BP)
        return accumulate(gradients, task, tf.zeros([2], tf.int32), num_slices=3)

    operations = step.get_concrete_function(tf.TensorSpec([6, 5])).graph.get_operations()
    (loop,) = (op for op in operations if op.type in ("While", "StatelessWhile"))
    *_, gradient_of_first = (op for op in operations if op.type == "MatMul")
    scalars = [x.op for x in loop.inputs if x.dtype == tf.int32 and x.shape.rank == 0]
    assert any(gradient_of_first in above(op) for op in scalars)
