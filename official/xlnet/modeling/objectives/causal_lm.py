"""Causal language modeling: GPT, and with memory Transformer-XL, over the same encoder."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    register_objective,
)
from official.xlnet.modeling.objectives.permutation_sampling import causal_order


@register_objective("causal")
def causal_objective(config: XLNetConfig) -> Objective:
    """Left-to-right language modeling: the content stream at t predicts token t + 1.

        loss = -Σ_t log p(x_t | x_1 … x_{t-1}, memory)

    Of a window only the reuse part is read: consecutive windows are consecutive text, and the
    memory holds what came before. The last row predicts the first token of the next window, so
    each token of a document is predicted once. With `reuse_len` 0 the whole window is read.
    Special tokens are not predicted.
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
