"""What is trained for: from a batch of windows to orders, targets and labels.

An objective is a function from a batch to `ObjectiveBatch`; the encoder, the training step and the
records know nothing about it. `objective.kind` of the configuration names one:

| kind | order | input | read from |
|---|---|---|---|
| `permutation` | drawn (XLNet) | original tokens | query stream at targets |
| `denoising` | all alike (BERT) | targets replaced | content stream at targets |
| `causal` | 0, 1, 2, … (GPT; with memory Transformer-XL) | original tokens | content stream |
"""

from __future__ import annotations

from collections.abc import Callable

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import require_one_of
from official.xlnet.modeling.objectives.base import Objective, ObjectiveBatch
from official.xlnet.modeling.objectives.causal_lm import causal_objective
from official.xlnet.modeling.objectives.denoising import denoising_objective
from official.xlnet.modeling.objectives.permutation_lm import permutation_objective

OBJECTIVES: dict[str, Callable[[XLNetConfig], Objective]] = {
    "permutation": permutation_objective,
    "denoising": denoising_objective,
    "causal": causal_objective,
}


def create_objective(config: XLNetConfig) -> Objective:
    """Returns the objective that `config.objective` asks for.

    With `objective.next_sentence` its tasks also say whether B follows A.
    """
    kind = config.objective.kind
    require_one_of("objective.kind", kind, tuple(OBJECTIVES))
    objective = OBJECTIVES[kind](config)
    if not config.objective.next_sentence:
        return objective

    def with_next_sentence(batch) -> ObjectiveBatch:
        return objective(batch)._replace(is_next_B=batch["is_next"])

    return with_next_sentence
