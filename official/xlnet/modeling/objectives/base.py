"""One batch as the model sees it, and where its targets come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import Registry
from official.xlnet.modeling.objectives.permutation_sampling import (
    Targets,
    sample_targets_and_order,
)


class ObjectiveBatch(NamedTuple):
    """One batch as the model sees it.

    Attributes:
      inputs: the model's inputs, without memory. `target_positions` int32 [B, P] has the targets
        read from the query stream, `content_positions` int32 [B, P] from the content stream.
      labels_BP: int32 [B, P], the tokens that are predicted there.
      mask_BP: float32 [B, P], 1 for real targets, 0 for unused slots.
      is_next_B: int32 [B], 1 where B follows A; None where that is not asked.
    """

    inputs: dict[str, tf.Tensor]
    labels_BP: tf.Tensor
    mask_BP: tf.Tensor
    is_next_B: tf.Tensor | None = None


Objective = Callable[[dict[str, tf.Tensor]], ObjectiveBatch]
CreateObjective = Callable[[XLNetConfig], Objective]
OBJECTIVES: Registry[CreateObjective] = Registry("objective.kind")


def register_objective(name: str) -> Callable[[CreateObjective], CreateObjective]:
    """Decorator that makes a function from a configuration to an `Objective` a pre-training
    objective.

    Args:
      name: the value of `objective.kind` that selects it.

    Raises:
      ConfigError: the name is taken.

    Example:
      >>> @register_objective("prefix")
      ... def prefix_objective(config):
      ...     def objective(batch):
      ...         ...
      ...         return ObjectiveBatch(inputs, labels, mask)
      ...     return objective
    """
    return OBJECTIVES.register(name)


def draw_targets(batch: dict[str, tf.Tensor], config: XLNetConfig) -> Targets:
    """Draws targets and order of a batch; see `permutation.sample_targets_and_order`.

    A draw belongs to (seed, epoch, window): it is new in every epoch and the same after a resume.
    """
    return sample_targets_and_order(
        batch["token_ids"],
        batch["is_word_start"],
        batch["can_be_target"],
        batch["is_reversed"],
        draw_number(batch, config),
        batch["window_id"],
        data=config.data,
        seed=config.training.seed,
    )


def draw_number(batch: dict[str, tf.Tensor], config: XLNetConfig) -> tf.Tensor:
    """Which of its draws a window gets, int32 [B]: the epoch, modulo `target_draws` if not 0."""
    draws = config.objective.target_draws
    return batch["epoch"] % draws if draws else batch["epoch"]


def direction(batch: dict[str, tf.Tensor], config: XLNetConfig) -> dict[str, tf.Tensor]:
    """The encoder's input that says which rows are reversed, where there can be such rows."""
    return {"is_reversed": batch["is_reversed"]} if config.data.bidirectional else {}
