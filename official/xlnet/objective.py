"""What is trained for: from a batch of windows to orders, targets and labels.

An objective is a function from a batch to `Task`; the encoder, the training step and the
records know nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.config import XLNetConfig
from official.xlnet.permutation import sample_targets_and_order


class Task(NamedTuple):
    """One batch as the model sees it.

    Attributes:
      inputs: the encoder's inputs, without memory.
      labels_BP: int32 [B, P], the tokens at `inputs["target_positions"]`.
      mask_BP: float32 [B, P], 1 for real targets, 0 for unused slots.
    """

    inputs: dict[str, tf.Tensor]
    labels_BP: tf.Tensor
    mask_BP: tf.Tensor


Objective = Callable[[dict[str, tf.Tensor]], Task]


def permutation_objective(config: XLNetConfig) -> Objective:
    """Permutation language modeling with partial prediction (paper, sections 2.2 and 2.3).

    The input is the original text. Order and targets are drawn anew for each (seed, epoch,
    window), so they differ between epochs and are the same after a resume.
    """

    def objective(batch: dict[str, tf.Tensor]) -> Task:
        drawn = sample_targets_and_order(
            batch["token_ids"],
            batch["is_word_start"],
            batch["can_be_target"],
            batch["is_reversed"],
            batch["epoch"],
            batch["window_id"],
            data=config.data,
            seed=config.training.seed,
        )
        inputs = {
            "token_ids": batch["token_ids"],
            "segment_ids": batch["segment_ids"],
            "order": drawn.order,
            "target_positions": drawn.target_positions,
        }
        if config.data.bidirectional:
            inputs["is_reversed"] = batch["is_reversed"]
        labels_BP = tf.gather(batch["token_ids"], drawn.target_positions, batch_dims=1)
        return Task(inputs, labels_BP, tf.cast(drawn.target_mask, tf.float32))

    return objective
