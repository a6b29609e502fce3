"""The encoder and the recurrent memory.

`model.network` selects the encoder, and the language-model head that belongs to it: XLNet's, or one
of `register_network`. All of them take and return the same, so objectives, records, training step
and tasks are the same.
"""

from __future__ import annotations

from official.xlnet.configs.model import ModelConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.networks.encoder import Encoder

__all__ = ["Encoder", "create_lm_head", "encoder_class"]


def encoder_class(network: str) -> type[Encoder]:
    """Returns the class of the encoder of a network.

    Args:
      network: name of the network, `model.network`.
    """
    return NETWORKS[network]


def create_lm_head(model: ModelConfig, **kwargs) -> LMHead:
    """Creates the language-model head of the network that `model.network` names.

    Args:
      model: hyperparameters of the network.
      **kwargs: arguments of a Keras layer.
    """
    return NETWORKS[model.network].lm_head_class.of(model, **kwargs)
