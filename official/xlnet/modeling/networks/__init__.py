"""The encoder and the recurrent memory, and the networks of rivals to compare with.

`model.network` selects the encoder, and the language-model head that belongs to it:

| network | positions | attention | head |
|---|---|---|---|
| `xlnet` | relative | two streams, with memory | tied |
| `bert` | absolute, learned | by default bidirectional | transform, then tied |
| `gpt` | absolute, learned | causal | tied |

All of them take and return the same, so objectives, records, training step and tasks are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from official.xlnet.configs.model import ModelConfig
from official.xlnet.modeling.layers.lm_head import LMHead
from official.xlnet.modeling.layers.masked_lm_head import MaskedLMHead
from official.xlnet.modeling.networks.bert_encoder import BertEncoder
from official.xlnet.modeling.networks.gpt_encoder import GptEncoder
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

Encoder = XLNetEncoder | BertEncoder


class _Network(NamedTuple):
    encoder: type[Encoder]
    lm_head: Callable[..., LMHead]


def _tied(model: ModelConfig, **kwargs) -> LMHead:
    return LMHead(model.vocab_size, model.embedding_rows, **kwargs)


def _transformed(model: ModelConfig, **kwargs) -> LMHead:
    settings = model.d_model, model.activation, model.init_std, model.embedding_rows
    return MaskedLMHead(model.vocab_size, *settings, **kwargs)


_NETWORKS = {
    "xlnet": _Network(XLNetEncoder, _tied),
    "bert": _Network(BertEncoder, _transformed),
    "gpt": _Network(GptEncoder, _tied),
}


def encoder_class(network: str) -> type[Encoder]:
    """Returns the class of the encoder of a network.

    Args:
      network: name of the network, `model.network`.
    """
    return _NETWORKS[network].encoder


def create_lm_head(model: ModelConfig, **kwargs) -> LMHead:
    """Creates the language-model head of the network that `model.network` names.

    Args:
      model: hyperparameters of the network.
      **kwargs: arguments of a Keras layer.
    """
    return _NETWORKS[model.network].lm_head(model, **kwargs)
