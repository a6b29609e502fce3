"""What is trained for: from a batch of windows to orders, targets and labels.

An objective is a function from a batch to `ObjectiveBatch`; the encoder, the training step and the
records know nothing about it. `objective.kind` of the configuration names one:

| kind | order | input | read from |
|---|---|---|---|
| `permutation` | drawn (XLNet) | original tokens | query stream at targets |
| `denoising` | all alike (BERT) | targets replaced | content stream at targets |
| `causal` | 0, 1, 2, … (GPT; with memory Transformer-XL) | original tokens | content stream |

`register_objective` adds others.
"""

from __future__ import annotations

from official.xlnet.configs.experiment import XLNetConfig

# Imported for the objectives that they register.
from official.xlnet.modeling.objectives import (  # noqa: F401
    causal_lm,
    denoising,
    permutation_lm,
)
from official.xlnet.modeling.objectives.base import (
    OBJECTIVES,
    Objective,
    ObjectiveBatch,
    register_objective,
)

__all__ = ["Objective", "ObjectiveBatch", "create_objective", "register_objective"]


def create_objective(config: XLNetConfig) -> Objective:
    """Returns the objective that `config.objective` asks for.

    With `objective.next_sentence` its batches also say whether B follows A.

    Raises:
      ConfigError: no objective is registered under `objective.kind`.
    """
    objective = OBJECTIVES[config.objective.kind](config)
    if not config.objective.next_sentence:
        return objective

    def with_next_sentence(batch) -> ObjectiveBatch:
        return objective(batch)._replace(is_next_B=batch["is_next"])

    return with_next_sentence
