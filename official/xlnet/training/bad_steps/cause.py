"""The cause of a bad step of pre-training: the first non-finite value, and its windows."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.run_data import RunData

_ROWS = 8  # Rows per forward pass.
_NOT_REPRODUCED = "not reproduced without dropout and memory"


def cause_of_bad_steps(
    model: XLNetPretrainer, data: RunData, first_step: int, step: int
) -> dict[str, Any]:
    """Finds the cause of a loss or gradient norm that is not finite.

    Args:
      model: the model, with the weights before the execution.
      data: the windows of each step.
      first_step: first step of the execution.
      step: last step of the execution.

    Returns:
      `first_bad_value`, see the function, of the first step that has one, and the ids of its
      `windows`; those of all steps if the bad value does not depend on them.
    """
    steps = range(first_step, step + 1)
    where = _NOT_REPRODUCED
    windows: list[int] = []
    for step_number in steps:
        result = first_bad_value(model, data.batch(step_number))
        if result is not None:
            where, windows = result
            break
    if not windows:
        for step_number in steps:
            windows = windows + data.windows(step_number)
    return {"first_bad_value": where, "windows": windows}


def first_bad_value(
    model: XLNetPretrainer, batch: dict[str, tf.Tensor]
) -> tuple[str, list[int]] | None:
    """Finds the first non-finite value in the weights, the forward or the backward pass.

    The windows of the step are run through the model again, a few rows at a time, without dropout
    and without memory, so the problem may not reproduce.

    Args:
      model: the model, with the weights before the step.
      batch: the batch of the step, as `pretraining_dataset` yields it.

    Returns:
      The variable, layer output or gradient, by name, and the ids of the affected windows, which
      are empty if the value does not depend on them; None if all values are finite.
    """
    for variable in model.trainable_variables:
        if not _is_finite(variable):
            return f"the weights {getattr(variable, 'path', variable.name)}", []
    layers = [model.encoder.word_embedding, *model.encoder.blocks, model.lm_head]
    for first in range(0, batch["window_id"].shape[0], _ROWS):
        rows = {name: value[first : first + _ROWS] for name, value in batch.items()}
        windows = rows["window_id"].numpy()
        with tf.GradientTape() as tape:
            loss_B = row_losses(model, rows)
        inputs = model.objective(rows).inputs
        inputs = {name: x for name, x in inputs.items() if name != "content_positions"}
        hidden_states = model.encoder(inputs, return_hidden_states=True)["hidden_states"]
        for layer, values in zip(layers, [*hidden_states, loss_B], strict=True):
            is_finite = tf.math.is_finite(values).numpy().reshape(len(windows), -1)
            if not is_finite.all():
                return f"the output of {layer.name}", windows[~is_finite.all(axis=1)].tolist()
        gradients = tape.gradient(loss_B, model.trainable_variables)
        for gradient, variable in zip(gradients, model.trainable_variables, strict=True):
            if gradient is not None and not _is_finite(tf.convert_to_tensor(gradient)):
                path = getattr(variable, "path", variable.name)
                return f"the gradient of {path}", windows.tolist()
    return None


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


def _is_finite(x: tf.Tensor) -> bool:
    return bool(tf.reduce_all(tf.math.is_finite(x)))
