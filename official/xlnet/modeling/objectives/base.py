"""Base types of pre-training objectives, and target sampling that they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from official.xlnet.configs.registry import INPUT_FORMATS, OBJECTIVES
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.errors import DataError, require_data
from official.xlnet.modeling.objectives.permutation_sampling import (
    Targets,
    sample_targets_and_order,
)


class Labels(NamedTuple):
    """Labels of an auxiliary objective.

    Attributes:
      label_BX: X labels of each row, int32 [B, X]; 0 or 1 for logistic regression.
      weight_BX: loss weights, float32 [B, X]: 1 for labels that count, 0 for others.
    """

    label_BX: tf.Tensor
    weight_BX: tf.Tensor


class ObjectiveBatch(NamedTuple):
    """Model inputs and labels of one training step.

    Attributes:
      inputs: model inputs without memory. Predictions are made from the query stream at
        `target_positions` int32 [B, P], or from the content stream at `content_positions`
        int32 [B, P].
      labels_BP: token ids to predict, int32 [B, P].
      mask_BP: loss weights, float32 [B, P]: above 0 for targets, 0 for unused slots.
      auxiliary: labels of each auxiliary objective.
    """

    inputs: dict[str, tf.Tensor]
    labels_BP: tf.Tensor
    mask_BP: tf.Tensor
    auxiliary: tuple[Labels, ...] = ()


class Features(dict[str, tf.Tensor]):
    """The features of a batch; a missing feature raises an error that names it."""

    @classmethod
    def of(cls, batch: dict[str, tf.Tensor]) -> Features:
        """The features of a batch; raises `DataError` where it is not a dictionary."""
        require_data(
            isinstance(batch, dict),
            "batch",
            "a dictionary of features",
            f"a {type(batch).__name__}",
        )
        return cls(batch)

    def __missing__(self, name: str) -> tf.Tensor:
        raise DataError(
            f"batch: expected the feature {name!r}, got {', '.join(sorted(self)) or 'none'}"
        )


Objective = Callable[[dict[str, tf.Tensor]], ObjectiveBatch]
CreateObjective = Callable[[ObjectiveSections], Objective]


def register_objective(name: str) -> Callable[[CreateObjective], CreateObjective]:
    """Decorator that registers a pre-training objective.

    The decorated function creates the `Objective` from `ObjectiveSections`.

    Args:
      name: value of `objective.kind` that selects it.

    Raises:
      ConfigError: an objective is already registered under the name.

    Example:
      >>> @register_objective("prefix")
      ... def prefix_objective(config):
      ...     def objective(batch):
      ...         ...
      ...         return ObjectiveBatch(inputs, labels, mask)
      ...     return objective
    """
    return OBJECTIVES.register(name)


@INPUT_FORMATS.register("pairs")
def pairs(create: CreateObjective, config: ObjectiveSections) -> Objective:
    """Returns the inputs of a record: the reuse part, A and B."""
    return create(config)


def draw_targets(batch: dict[str, tf.Tensor], config: ObjectiveSections) -> Targets:
    """Samples targets and factorization orders; see `sample_targets_and_order`.

    Samples are a function of (seed, epoch, window): new in every epoch, the same after resuming.

    Args:
      batch: a batch, as `pretraining_dataset` yields it.
      config: sections of the experiment; uses `data`, `objective` and `seed`.
    """
    return sample_targets_and_order(
        batch["token_ids"],
        batch["is_word_start"],
        batch["can_be_target"],
        batch["is_reversed"],
        draw_number(batch, config),
        batch["window_id"],
        data=config.data,
        seed=config.seed,
        left_to_right_share=config.objective.left_to_right_share,
    )


def draw_number(batch: dict[str, tf.Tensor], config: ObjectiveSections) -> tf.Tensor:
    """Returns the sample number of each window, int32 [B].

    It is the epoch, modulo `objective.target_draws` unless that is 0 (static masking as in BERT
    reuses a fixed number of masks).

    Args:
      batch: a batch, as `pretraining_dataset` yields it.
      config: sections of the experiment.
    """
    draws = config.objective.target_draws
    return batch["epoch"] % draws if draws else batch["epoch"]


def direction(batch: dict[str, tf.Tensor], config: ObjectiveSections) -> dict[str, tf.Tensor]:
    """Returns the encoder input `is_reversed` bool [B]; empty if `data.bidirectional` is off.

    Args:
      batch: a batch, as `pretraining_dataset` yields it.
      config: sections of the experiment.
    """
    return {"is_reversed": batch["is_reversed"]} if config.data.bidirectional else {}


def halves_order(token_ids: tf.Tensor, config: ObjectiveSections) -> dict[str, tf.Tensor]:
    """Returns the encoder input `order` int32 [B, T] of masked text; empty without memory.

    With memory, the reused part does not attend to the rest of the window: otherwise the memory
    would leak the targets of the next window.

    Args:
      token_ids: int32 [B, T].
      config: sections of the experiment.
    """
    if not config.model.mem_len:
        return {}
    is_second_half_T = tf.range(token_ids.shape[1]) >= config.data.reuse_len
    return {"order": tf.zeros_like(token_ids) + tf.cast(is_second_half_T, tf.int32)}


def prediction_rows(
    outputs: dict[str, tf.Tensor], inputs: dict[str, tf.Tensor]
) -> tf.Tensor | None:
    """Returns the hidden states that predictions are made from, [B, P, D]; None without any.

    Args:
      outputs: outputs of the encoder.
      inputs: `ObjectiveBatch.inputs`.
    """
    if "content_positions" in inputs:
        return tf.gather(outputs["content"], inputs["content_positions"], batch_dims=1)
    return outputs.get("query")
