"""Gradient accumulation over slices of a batch: in sequence to save memory, or in parallel."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from official.xlnet.configs.training import TrainingConfig
from official.xlnet.modeling.kernels.device_forms import has_accelerator
from official.xlnet.modeling.kernels.stateless_dropout import fold_in
from official.xlnet.modeling.objectives.base import ObjectiveBatch
from official.xlnet.runtime.cores import num_parallel_slices


def accumulated(gradients: Callable, num_rows: int | None, training: TrainingConfig) -> Callable:
    """Returns `gradients`, summed over `accumulate_steps` slices of the rows of a batch.

    Peak memory is as for one slice. Each is computed in `parallel_slices` parts. Where gradients
    are sums over rows, as with a loss that is divided by the target count of the whole batch, the
    result does not depend on the slicing.

    Args:
      gradients: maps an `ObjectiveBatch` and a dropout seed int32 [2] to (list of gradients, None
        where a variable has none, loss sum, memory [L, rows, M, D] or None).
      num_rows: number of rows of a batch, None if unknown; XLA needs a static multiple of
        `accumulate_steps`.
      training: the training configuration.

    Returns:
      A function like `gradients`: of the whole batch to the sums of gradients and of loss sums, and
      the memory of all rows. Each slice gets a seed of its own.
    """
    num_slices = training.accumulate_steps
    rows_of_slice = num_rows and num_rows // num_slices
    num_parts = num_parallel_slices(training, rows_of_slice, has_accelerator())
    gradients = _in_parallel(gradients, num_parts)
    return gradients if num_slices == 1 else _in_sequence(gradients, num_slices)


def _in_sequence(gradients: Callable, num_slices: int) -> Callable:
    """Gradients summed over slices, each of which waits for the one before; see `accumulated`."""

    def summed(task: ObjectiveBatch, seed: tf.Tensor):
        return _sums_in_sequence(gradients, num_slices, task, seed)

    return summed


def _sums_in_sequence(
    gradients: Callable, num_slices: int, task: ObjectiveBatch, seed: tf.Tensor
) -> tuple[list[tf.Tensor | None], tf.Tensor, tf.Tensor | None]:
    """Sums of the results of `gradients` over slices, which are computed in turn."""

    def one_slice(slice_number: tf.Tensor):
        return gradients(_slice(task, slice_number, num_slices), fold_in(seed, slice_number))

    def body(slice_number, total, loss_sum, memories):
        part, part_loss, memory = one_slice(slice_number)
        total = [a + b for a, b in zip(total, _dense(part), strict=True)]
        memories = [states.write(slice_number, memory) for states in memories]
        return slice_number + 1, total, loss_sum + part_loss, memories

    first, loss_sum, memory = one_slice(tf.constant(0))
    with tf.control_dependencies(_dense(first)):  # Or the second slice would begin beside it.
        second = tf.constant(1)
    memories = []  # One array, or none.
    if memory is not None:
        states = tf.TensorArray(memory.dtype, num_slices, element_shape=memory.shape)
        memories = [states.write(0, memory)]
    _, total, loss_sum, memories = tf.while_loop(
        lambda slice_number, *_: slice_number < num_slices,
        body,
        (second, _dense(first), loss_sum, memories),
        parallel_iterations=1,
        maximum_iterations=num_slices - 1,
    )
    sums = iter(total)
    total = [None if gradient is None else next(sums) for gradient in first]
    if not memories:
        return total, loss_sum, None
    memory_SLbMD = memories[0].stack()
    memory_LSbMD = tf.transpose(memory_SLbMD, [1, 0, 2, 3, 4])
    layers, _, _, *rest = memory_LSbMD.shape
    return total, loss_sum, tf.reshape(memory_LSbMD, [layers, -1, *rest])


def _in_parallel(gradients: Callable, num_slices: int) -> Callable:
    """`gradients`, as `accumulated` takes it, of slices that do not wait for each other.

    A small network keeps several cores busy this way, each with a slice of its own, where the
    parts of a single operation are too small to share (`distribution.limit_threads`). Sums and
    dropout are the same as with `accumulated`.
    """
    if num_slices == 1:
        return gradients

    def summed(task: ObjectiveBatch, seed: tf.Tensor):
        parts = []
        for slice_number in range(num_slices):
            part = _slice(task, slice_number, num_slices)
            parts.append(gradients(part, fold_in(seed, slice_number)))
        gradients_of_slices, loss_sums, memories = zip(*parts, strict=True)
        total: list[tf.Tensor | None] = []
        for slice_gradients in zip(*gradients_of_slices, strict=True):
            if slice_gradients[0] is None:
                total.append(None)
            else:
                total.append(tf.add_n(_dense(slice_gradients)))
        memory = None if memories[0] is None else tf.concat(memories, axis=1)
        return total, tf.add_n(loss_sums), memory

    return summed


def _dense(gradients) -> list[tf.Tensor]:
    """Gradients that are not None, as dense tensors."""
    return [tf.convert_to_tensor(gradient) for gradient in gradients if gradient is not None]


def _slice(task: ObjectiveBatch, slice_number: int | tf.Tensor, num_slices: int) -> ObjectiveBatch:
    """The rows of one of `num_slices` slices of a batch."""
    batch_size = task.labels_BP.shape[0]
    if batch_size is not None and batch_size % num_slices == 0:
        size = batch_size // num_slices
        chosen = slice_number * size + tf.range(size)
    else:  # The last batch of Keras' `fit` may be smaller; sizes of its slices differ by one.
        size, num_rows = None, tf.shape(task.labels_BP)[0]
        chosen = tf.range(
            slice_number * num_rows // num_slices, (slice_number + 1) * num_rows // num_slices
        )

    def rows(x: tf.Tensor, axis: int = 0) -> tf.Tensor:
        sliced = tf.gather(x, chosen, axis=axis)
        return tf.ensure_shape(sliced, [*x.shape[:axis], size, *x.shape[axis + 1 :]])

    inputs = {}
    for name, value in task.inputs.items():
        batch_axis = 1 if name == "memory" else 0
        inputs[name] = rows(value, batch_axis)
    auxiliary = tf.nest.map_structure(rows, task.auxiliary)
    return ObjectiveBatch(inputs, rows(task.labels_BP), rows(task.mask_BP), auxiliary)
