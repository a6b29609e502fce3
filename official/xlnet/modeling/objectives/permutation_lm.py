"""Permutation language modeling: the XLNet objective."""

from __future__ import annotations

import tensorflow as tf

from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    direction,
    draw_targets,
    register_objective,
)


@register_objective("permutation")
def permutation_objective(config: ObjectiveSections) -> Objective:
    """Creates the permutation objective with partial prediction (XLNet, sections 2.2 and 2.3).

        loss = -Σ_t log p(x_t | x_j with order[j] < order[t]),    t over the targets

    The input is the original text; predictions are made from the query stream.
    `data.target_ratio` is the paper's K. `data.target_unit` and `data.max_span` select spans of
    words or single tokens (`token` and 1) as targets.

    A batch with `perm_mask` brings its own permutation and targets: see `given_permutation`.

    Args:
      config: sections of the experiment; uses `data`, `objective` and `seed`.
    """

    def objective(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
        if "perm_mask" in batch:
            return given_permutation(batch)
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


def given_permutation(batch: dict[str, tf.Tensor]) -> ObjectiveBatch:
    """Returns the `ObjectiveBatch` of a batch with its own permutation and targets.

    Args:
      batch: a dictionary of
        token_ids: int32 [B, T], the original text.
        perm_mask: bool [B, T, T], True where i may not attend to j.
        target_positions: int32 [B, P], where tokens are predicted. A target never attends to
          itself.
        target_mask: bool or float32 [B, P], which slots are real targets; default: all.
        segment_ids, is_padding, is_reversed: as the encoder takes them; optional.

    Returns:
      The task; its labels are the token ids at the targets.
    """
    names = ("token_ids", "perm_mask", "target_positions")
    optional = ("segment_ids", "is_padding", "is_reversed")
    inputs = {name: batch[name] for name in names}
    inputs |= {name: batch[name] for name in optional if name in batch}
    labels_BP = tf.gather(batch["token_ids"], batch["target_positions"], batch_dims=1)
    mask_BP = batch.get("target_mask", tf.ones_like(labels_BP))
    return ObjectiveBatch(inputs, labels_BP, tf.cast(mask_BP, tf.float32))
