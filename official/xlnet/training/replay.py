"""Diagnosis of a bad training step: where the first non-finite value is, and which windows.

The windows of the step are run through the model again, a few rows at a time, without dropout
and without memory, so the problem may not reproduce.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer

_ROWS = 8  # Rows per forward pass.


class Finding(NamedTuple):
    """Location of the first non-finite value.

    Attributes:
      where: the variable, layer output or gradient, by name; "" if all values are finite.
      windows: ids of the affected windows; empty if the value does not depend on the windows.
    """

    where: str
    windows: list[int]


def first_bad_value(model: XLNetPretrainer, batch: dict[str, tf.Tensor]) -> Finding:
    """Finds the first non-finite value in the weights, the forward or the backward pass.

    Args:
      model: the model, with the weights before the step.
      batch: the batch of the step, as `pretraining_dataset` yields it.

    Returns:
      Where it is, and in which windows.
    """
    for variable in model.trainable_variables:
        if not _is_finite(variable):
            return Finding(f"the weights {variable.name}", [])
    layers = [model.encoder.word_embedding, *dict.fromkeys(model.encoder.blocks), model.lm_head]
    for rows in _slices(batch):
        bad: list[tuple[str, list[int]]] = []

        def look(layer, output, rows=rows, bad=bad):
            is_bad = np.array([not _is_finite(row) for row in output])
            if is_bad.any():
                bad.append((layer.name, rows["window_id"].numpy()[is_bad].tolist()))

        with contextlib.ExitStack() as stack, tf.GradientTape() as tape:
            for layer in layers:
                stack.enter_context(_observed(layer, look))
            loss = tf.reduce_sum(row_losses(model, rows))
        if bad:
            return Finding(f"the output of {bad[0][0]}", bad[0][1])
        gradients = tape.gradient(loss, model.trainable_variables)
        for gradient, variable in zip(gradients, model.trainable_variables, strict=True):
            if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
                windows = rows["window_id"].numpy().tolist()
                return Finding(f"the gradient of {variable.name}", windows)
    return Finding("", [])


def worst_windows(
    model: XLNetPretrainer, batch: dict[str, tf.Tensor], number: int
) -> list[tuple[int, float]]:
    """Returns the windows of a batch with the highest losses.

    Args:
      model: the model.
      batch: a batch, as `pretraining_dataset` yields it.
      number: how many windows to return.

    Returns:
      Pairs (window id, loss in nats per target), highest loss first.
    """
    losses_B = np.concatenate([row_losses(model, rows) for rows in _slices(batch)])
    worst = np.argsort(-losses_B)[:number]
    windows = batch["window_id"].numpy()
    return [(int(windows[row]), float(losses_B[row])) for row in worst]


def row_losses(model: XLNetPretrainer, batch: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss of each row, float32 [B], in nats per target, without dropout or memory.

    Args:
      model: the model.
      batch: a batch, as `pretraining_dataset` yields it.
    """
    task = model.objective(batch)
    logits_BPV = model(task.inputs, training=False)["logits"]
    loss_BP = tf.nn.sparse_softmax_cross_entropy_with_logits(task.labels_BP, logits_BPV)
    count_B = tf.reduce_sum(task.mask_BP, axis=1)
    return tf.math.divide_no_nan(tf.reduce_sum(loss_BP * task.mask_BP, axis=1), count_B)


def _slices(batch: dict[str, tf.Tensor]) -> Iterator[dict[str, tf.Tensor]]:
    for first in range(0, batch["window_id"].shape[0], _ROWS):
        yield {name: value[first : first + _ROWS] for name, value in batch.items()}


def _is_finite(x: tf.Tensor) -> bool:
    return bool(tf.reduce_all(tf.math.is_finite(x)))


@contextlib.contextmanager
def _observed(layer: tf_keras.layers.Layer, look: Callable) -> Iterator[None]:
    """Forward hook: calls `look(layer, output)` after each call of a layer."""
    call = layer.call

    def observed(*args, **kwargs):
        output = call(*args, **kwargs)
        look(layer, output)
        return output

    layer.call = observed
    try:
        yield
    finally:
        layer.call = call
