"""Causal language modeling: GPT, or Transformer-XL if used with memory."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    register_objective,
)
from official.xlnet.modeling.objectives.permutation_sampling import causal_order


@register_objective("causal")
def causal_objective(config: ObjectiveSections) -> Objective:
    """Creates the causal (left-to-right) objective: the content stream at t predicts token t + 1.

        loss = -Σ_t log p(x_t | x_1 … x_{t-1}, memory)

    Only the reused part of each window is read, as consecutive windows hold consecutive text
    there and the memory holds the text before. Its last position predicts the first token of the
    next window, so each token of a document is predicted once. With `reuse_len` 0 the whole
    window is read. Special tokens are not predicted.

    Args:
      config: sections of the experiment; uses `data`.
    """
    data = config.data
    length = data.reuse_len or data.seq_len
    num_rows = min(length, data.seq_len - 1)

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        size = batch["token_ids"].shape[0]
        inputs = {
            "token_ids": batch["token_ids"][:, :length],
            "segment_ids": batch["segment_ids"][:, :length],
            "order": causal_order(size, length),
            "content_positions": tf.tile(tf.range(num_rows)[None], [size, 1]),
            **direction(batch, config),
        }
        following = slice(1, num_rows + 1)
        is_target_BP = batch["can_be_target"][:, following]
        return ObjectiveBatch(
            inputs, batch["token_ids"][:, following], tf.cast(is_target_BP, tf.float32)
        )

    return objective
