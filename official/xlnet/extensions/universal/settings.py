"""Keys of the Universal Transformer's depth in the `model` section."""

from __future__ import annotations

from official.xlnet.configs.base import register_settings
from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.validation import Range


@register_settings("model", depth=("shared", "adaptive"))
class UniversalModelConfig(ModelConfig):
    """`depth` may be `shared` (one block for all layers) or `adaptive` (each token halts, too).

    Attributes:
      step_encoding: whether the input of the shared block says which step it is.
      halting_threshold: sum of halting probabilities at which a token halts, with
        `depth: adaptive`; `num_layers` is the most that it goes through.
      ponder_weight: weight in the loss of the mean number of steps (more exactly, of the ponder
        cost), with `depth: adaptive`.
    """

    allowed = {"halting_threshold": Range(0, 1), "ponder_weight": Range(0, 1000)}
    unread_with = {
        "step_encoding": ("depth", ("stacked",)),
        "halting_threshold": ("depth", ("stacked", "shared")),
        "ponder_weight": ("depth", ("stacked", "shared")),
    }

    step_encoding: bool = True
    halting_threshold: float = 0.99
    ponder_weight: float = 0.01

    def depth_parameters(self, block: int) -> int:
        """As in `ModelConfig`, of one block, and D + 1 of halting."""
        sizes = {"shared": block, "adaptive": block + self.d_model + 1}
        return sizes.get(self.depth) or super().depth_parameters(block)
