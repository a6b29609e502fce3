"""The optimizer of the experiments: AdamW with warmup and linear decay, as in the paper."""

from __future__ import annotations

from typing import Any


def adamw(learning_rate: float, num_steps: int, warmup_steps: int) -> dict[str, Any]:
    """Settings of `official.modeling.optimization.OptimizationConfig`.

    Args:
      learning_rate: the highest learning rate.
      num_steps: steps until it is 0.
      warmup_steps: steps of linear warmup.
    """
    return {
        "optimizer": {
            "type": "adamw",
            "adamw": {
                "weight_decay_rate": 0.01,
                "epsilon": 1e-6,
                "exclude_from_weight_decay": ["gamma", "beta", "bias"],
            },
        },
        "learning_rate": {
            "type": "polynomial",
            "polynomial": {
                "initial_learning_rate": learning_rate,
                "end_learning_rate": 0.0,
                "decay_steps": num_steps,
            },
        },
        "warmup": {"type": "polynomial", "polynomial": {"warmup_steps": warmup_steps}},
    }
