"""How blocks follow each other in depth: a block per layer, one for all, or one with halting."""

from __future__ import annotations

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.depth.adaptive import AdaptiveDepth
from official.xlnet.modeling.depth.shared import SharedDepth
from official.xlnet.modeling.depth.stacked import StackedDepth

# By `model.depth`.
DEPTHS: dict[str, type[StackedDepth]] = {
    "stacked": StackedDepth,
    "shared": SharedDepth,
    "adaptive": AdaptiveDepth,
}


def create_depth(model: ModelConfig) -> StackedDepth:
    """Returns the depth of an encoder, unbuilt.

    Args:
      model: hyperparameters of the network; `model.depth` is a key of `DEPTHS`.
    """
    return DEPTHS[model.depth].from_model(model, name="depth")
