"""Pre-training objectives: permutation, denoising and causal language modeling.

An objective is a function from a batch of windows to an `ObjectiveBatch`: model inputs with a
factorization order, targets and labels. Encoder, training step and data set are the same for all
of them. `objective.kind` selects one:

| kind | factorization order | input tokens | predictions from |
|---|---|---|---|
| `permutation` | sampled (XLNet) | original | query stream at targets |
| `denoising` | all equal (BERT) | corrupted at targets | content stream at targets |
| `causal` | 0, 1, 2, … (GPT; with memory, Transformer-XL) | original | content stream |

`register_objective` adds others. `auxiliary` has objectives that are learned besides, in stages.
"""

from __future__ import annotations

from official.xlnet.configs.registry import INPUT_FORMATS, OBJECTIVES
from official.xlnet.configs.sections import ObjectiveSections
from official.xlnet.modeling.objectives.base import (
    Objective,
    ObjectiveBatch,
    register_objective,
)

__all__ = ["Objective", "ObjectiveBatch", "create_objective", "register_objective"]


def create_objective(config: ObjectiveSections) -> Objective:
    """Creates the pre-training objective that `config.objective` describes.

    Args:
      config: sections of the experiment.

    Returns:
      A function from a batch, as `pretraining_dataset` yields it, to an `ObjectiveBatch`.

    Raises:
      ConfigError: no objective is registered under `objective.kind`.
    """
    create = OBJECTIVES[config.objective.kind]
    return INPUT_FORMATS[config.objective.input_format](create, config)
