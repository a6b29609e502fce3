"""Gradient accumulation: a batch in slices, one after the other, one update."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from official.xlnet.dropout import fold_in
from official.xlnet.objectives.task import Task


def accumulate(gradients: Callable, task: Task, seed: tf.Tensor, num_slices: int):
    """Sums what `gradients(slice of task, seed)` returns over `num_slices` slices of rows.

    Peak memory is that of one slice. Where gradients are sums over rows, as with a loss that is
    divided by the target count of the whole batch, the result does not depend on the slicing.

    Args:
      gradients: maps a `Task` and a dropout seed int32 [2] to (list of gradients, loss sum,
        memory [L, rows, M, D] or None).
      task: the whole batch; the number of rows is a multiple of `num_slices`.
      seed: int32 [2]; each slice gets its own.
      num_slices: number of slices.

    Returns:
      The sums of gradients and of loss sums, and the memory of all rows.
    """
    if num_slices == 1:
        return gradients(task, seed)
    batch_size = task.labels_BP.shape[0]
    if batch_size % num_slices:
        raise ValueError(
            f"training.accumulate_steps: expected a divisor of the {batch_size} rows that a "
            f"replica gets, got {num_slices}"
        )
    size = batch_size // num_slices

    def rows(x: tf.Tensor, number: tf.Tensor, axis: int = 0) -> tf.Tensor:
        sliced = tf.gather(x, number * size + tf.range(size), axis=axis)
        return tf.ensure_shape(sliced, [*x.shape[:axis], size, *x.shape[axis + 1 :]])

    def one_slice(number: tf.Tensor):
        inputs = {
            name: rows(value, number, axis=1 if name == "memory" else 0)
            for name, value in task.inputs.items()
        }
        is_next_B = None if task.is_next_B is None else rows(task.is_next_B, number)
        part = Task(inputs, rows(task.labels_BP, number), rows(task.mask_BP, number), is_next_B)
        part_gradients, loss_sum, memory = gradients(part, fold_in(seed, number))
        part_gradients = [tf.convert_to_tensor(gradient) for gradient in part_gradients]
        return part_gradients, loss_sum, memory

    def body(number, total, loss_sum, memories):
        part, part_loss, memory = one_slice(number)
        total = [a + b for a, b in zip(total, part, strict=True)]
        memories = [states.write(number, memory) for states in memories]
        return number + 1, total, loss_sum + part_loss, memories

    first, loss_sum, memory = one_slice(tf.constant(0))
    memories = []  # One array, or none.
    if memory is not None:
        states = tf.TensorArray(memory.dtype, num_slices, element_shape=memory.shape)
        memories = [states.write(0, memory)]
    _, total, loss_sum, memories = tf.while_loop(
        lambda number, *_: number < num_slices,
        body,
        (tf.constant(1), first, loss_sum, memories),
        parallel_iterations=1,
        maximum_iterations=num_slices - 1,
    )
    if not memories:
        return total, loss_sum, None
    memory_SLbMD = memories[0].stack()
    memory_LSbMD = tf.transpose(memory_SLbMD, [1, 0, 2, 3, 4])
    layers, _, _, *rest = memory_LSbMD.shape
    return total, loss_sum, tf.reshape(memory_LSbMD, [layers, batch_size, *rest])
