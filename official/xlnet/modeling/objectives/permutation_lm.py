"""Permutation language modeling: XLNet's own objective."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    draw_targets,
    register_objective,
)


@register_objective("permutation")
def permutation_objective(config: XLNetConfig) -> Objective:
    """Permutation language modeling with partial prediction (paper, sections 2.2 and 2.3).

        loss = -Σ_t log p(x_t | x_j with order[j] < order[t]),    t over the targets

    The input is the original text; the query stream predicts. `data.target_ratio` is the paper's
    K; `data.target_unit` and `data.max_span` choose spans of words or single tokens
    (`token` and 1).
    """

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        drawn = draw_targets(batch, config)
        inputs = {
            "token_ids": batch["token_ids"],
            "segment_ids": batch["segment_ids"],
            "order": drawn.order,
            "target_positions": drawn.target_positions,
            **direction(batch, config),
        }
        labels_BP = tf.gather(batch["token_ids"], drawn.target_positions, batch_dims=1)
        return ObjectiveBatch(inputs, labels_BP, tf.cast(drawn.target_mask, tf.float32))

    return objective
