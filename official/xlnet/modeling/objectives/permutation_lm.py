"""Permutation language modeling: the XLNet objective."""

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
    """Creates the permutation objective with partial prediction (XLNet, sections 2.2 and 2.3).

        loss = -Σ_t log p(x_t | x_j with order[j] < order[t]),    t over the targets

    The input is the original text; predictions are made from the query stream.
    `data.target_ratio` is the paper's K. `data.target_unit` and `data.max_span` select spans of
    words or single tokens (`token` and 1) as targets.

    Args:
      config: the experiment configuration; uses `data`, `objective` and `training.seed`.
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
