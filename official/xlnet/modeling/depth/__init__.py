"""How blocks follow each other in depth: a block per layer, or as an extension says."""

from __future__ import annotations

from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import DEPTHS
from official.xlnet.modeling.depth.stacked import StackedDepth


def create_depth(model: ModelConfig) -> StackedDepth:
    """Returns the depth of an encoder, unbuilt.

    Args:
      model: hyperparameters of the network; `model.depth` is the name of a registered depth.
    """
    return DEPTHS[model.depth].from_model(model, name="depth")
