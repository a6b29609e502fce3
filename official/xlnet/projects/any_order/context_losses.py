"""Loss of a pre-trained model by context: what each target sees, and where it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.configs.registry import BREAKDOWNS
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json
from official.xlnet.modeling.layers.two_stream_mask import TwoStreamAttentionMask
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.objectives.base import ObjectiveBatch, prediction_rows
from official.xlnet.modeling.ops.visibility import can_attend
from official.xlnet.runtime.pictures import new_figure, png
from official.xlnet.tokenization.special_tokens import MASK_ID

_LABELS = {
    "visible_tokens": "tokens that a target sees, memory included",
    "position": "position in the window",
    "rank": "targets that a target sees",
}
_VISIBILITY = ("order", "perm_mask", "is_padding", "target_positions")


@BREAKDOWNS.register("context")
def evaluate_by_context(
    model: XLNetPretrainer, batches: Iterable[dict[str, tf.Tensor]], output: str | None
) -> dict[str, list[dict[str, float]]]:
    """Returns the loss by context, see `context_losses`, and writes it to a directory, if any."""
    losses = context_losses(model, batches)
    if output:
        write_context_losses(output, losses)
    return losses


def context_losses(
    model: XLNetPretrainer, batches: Iterable[dict[str, tf.Tensor]]
) -> dict[str, list[dict[str, float]]]:
    """Returns the mean loss of targets by their context, in bins whose limits are powers of two.

    Args:
      model: a pre-trained model without memory of other windows.
      batches: batches of `pretraining_dataset`, in the order of their windows.

    Returns:
      {name: bins} of `visible_tokens`, the number of tokens that a target sees, `<mask>` left out;
      `position` in the window; and `rank`, how many targets it sees. Each bin has its first value,
      `from`, its last one, `to`, the number of `targets` and their `loss` in nats.
    """
    values: dict[str, list[np.ndarray]] = {name: [] for name in (*_LABELS, "loss", "weight")}
    step = tf.function(lambda batch: _contexts_and_losses(model, batch), autograph=False)
    for batch in batches:
        for name, value_BP in step(batch).items():
            values[name].append(value_BP.numpy().ravel())
    flat = {name: np.concatenate(parts) for name, parts in values.items()}
    loss, weight = flat["loss"].astype(float), flat["weight"].astype(float)
    return {name: _bins(flat[name], loss, weight) for name in _LABELS}


def write_context_losses(directory: str, losses: dict[str, list[dict[str, float]]]) -> None:
    """Writes `context.json` and its picture, `context.png`."""
    os.makedirs(directory, exist_ok=True)
    write_json(os.path.join(directory, "context.json"), losses)
    figure = new_figure(12, 4)
    for axes, (name, label) in zip(figure.subplots(1, len(_LABELS)), _LABELS.items(), strict=True):
        middle = [(bin_["from"] + bin_["to"]) / 2 for bin_ in losses[name]]
        axes.plot(middle, [bin_["loss"] for bin_ in losses[name]], marker="o", color="#29619f")
        axes.set(xlabel=label, ylabel="loss, nats")
    figure.tight_layout()
    write_bytes(os.path.join(directory, "context.png"), png(figure))


def _contexts_and_losses(model: XLNetPretrainer, batch: dict[str, tf.Tensor]) -> dict[str, Any]:
    """Context, loss and weight of each target, [B, P]."""
    task = model.make_permutation(batch)
    task.inputs.update(model.memory_inputs(batch))
    outputs = model(task.inputs, training=False)
    model.update_memory(outputs, batch)
    loss_BP = tf.nn.sparse_softmax_cross_entropy_with_logits(
        task.labels_BP, tf.cast(outputs["logits"], tf.float32)
    )
    return {**_contexts(task), "loss": loss_BP, "weight": task.mask_BP}


def _contexts(task: ObjectiveBatch) -> dict[str, tf.Tensor]:
    """Values of `_LABELS` for each target, int32 [B, P]."""
    inputs, token_ids_BT = task.inputs, task.inputs["token_ids"]
    memory = inputs.get("memory")
    mask = TwoStreamAttentionMask()(
        token_ids_BT,
        **{name: inputs.get(name) for name in _VISIBILITY},
        memory=None if memory is None else memory[0],
        memory_length=inputs.get("memory_length"),
    )
    rows = {"content": can_attend(mask.content, mask.keys, False)}
    rows["query"] = can_attend(mask.query, mask.keys, False)
    sees_BPK = tf.cast(prediction_rows(rows, inputs), tf.int32)
    is_text_BT = tf.cast(token_ids_BT != MASK_ID, tf.int32)
    num_memory = sees_BPK.shape[2] - token_ids_BT.shape[1]
    is_text_BK = tf.pad(is_text_BT, [[0, 0], [num_memory, 0]], constant_values=1)
    position_BP = inputs.get("target_positions", inputs.get("content_positions"))
    is_target_BT = tf.reduce_max(
        tf.one_hot(position_BP, token_ids_BT.shape[1], dtype=tf.int32)
        * tf.cast(task.mask_BP > 0, tf.int32)[..., None],
        axis=1,
    )
    sees_text_BPK = sees_BPK * is_text_BK[:, None]
    return {
        "visible_tokens": tf.reduce_sum(sees_text_BPK, axis=2),
        "position": position_BP,
        "rank": tf.reduce_sum(sees_text_BPK[:, :, num_memory:] * is_target_BT[:, None], axis=2),
    }


def _bins(values: np.ndarray, loss: np.ndarray, weight: np.ndarray) -> list[dict[str, float]]:
    """Weighted means of the loss in bins 0, 1, 2 to 3, 4 to 7, …; empty bins are left out."""
    bin_number = np.ceil(np.log2(values + 1.0)).astype(int)
    totals, counts = (np.bincount(bin_number, x) for x in (loss * weight, weight))
    return [
        {"from": 2**n >> 1, "to": max(2**n - 1, 0), "targets": float(counts[n])}
        | {"loss": float(totals[n] / counts[n])}
        for n in np.flatnonzero(counts).tolist()
    ]
