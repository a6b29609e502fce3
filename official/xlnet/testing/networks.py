"""Conformance of a network, a depth, or initial weights of attention."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.testing.objectives import TINY, check_training, refuse
from official.xlnet.tokenization.special_tokens import NUM_SPECIAL

_ROUNDING = 1e-4
# Forms of a step in which a network differs, and the largest relative error of its gradients.
_OTHER_STEPS = {("recompute=block", "precision=mixed_bfloat16"): 0.05, ("jit_compile=true",): 1e-4}
_PADDED, _TOKENS = 10, 7


def check_network(network: str, overrides: Sequence[str] = (), quick: bool = False) -> None:
    """Checks a network: its vectors of random texts, and its training.

    The vectors of a text depend neither on padding, on either side, nor on the other rows of a
    batch. A network that is created from `get_config`, with the same weights, has equal ones.
    `model.num_parameters`, which the estimate of memory reads, is right.

    With the objective, no prediction depends on a token that the objective hides from it, and each
    depends on some token. All weights have finite gradients. Loss and gradients are the same with
    `jit_compile`, and close to them with recomputation in bfloat16. A model that is saved between
    two steps is restored to the bit. Forms of a step that the network has no part in, such as
    gradient accumulation, are checked by `check_objective`.

    Args:
      network: the name that the network is registered under.
      overrides: further settings, as `key=value`: with `xlnet`, `depth=shared` checks a depth, and
        `attention_init=neighbors` initial weights. `objective.kind` and `mem_len=0` choose how the
        network is trained. Without the compiled step (`jit_compile=false`), a check takes half the
        time.
      quick: whether to check vectors, dependencies and the gradients of one step alone, in a
        second.

    Raises:
      AssertionError: the network fails a check, which the message names.
      ConfigError: the network does not work with the tiny configuration without `overrides`.

    Example:
      >>> check_network("xlnet", ["depth=shared", "mem_len=0"])
    """
    overrides = [f"model.network={network}", *overrides]
    config = XLNetConfig.from_dict(TINY).changed(overrides)
    encoder = NETWORKS[network](config)
    encoder.build(None)
    count = encoder.count_params()
    sentence = f"model.num_parameters: {config.model.num_parameters:,}, the network has {count:,}"
    refuse(config.model.num_parameters != count, sentence)
    rng = np.random.default_rng(0)
    shape, starts = [3, _PADDED], np.array([[_PADDED - _TOKENS], [0], [1]])
    ids_BT = rng.integers(NUM_SPECIAL, config.model.vocab_size, shape)
    is_text_BT = (np.arange(_PADDED) >= starts) & (np.arange(_PADDED) < starts + _TOKENS)
    content_BTD = encoder({"token_ids": ids_BT, "is_padding": ~is_text_BT})["content"].numpy()
    again = type(encoder).from_config(json.loads(json.dumps(encoder.get_config())))
    again.build(None)
    again.set_weights(encoder.get_weights())
    for ids_T, is_text_T, content_TD in zip(ids_BT, is_text_BT, content_BTD, strict=True):
        text_1T = ids_T[None, is_text_T]
        alone, restored = encoder(text_1T)["content"][0], again(text_1T)["content"][0]
        is_other = np.abs(content_TD[is_text_T] - alone) > _ROUNDING
        refuse(is_other, "padding or other rows change the vectors of a text; token and element:")
        refuse(
            alone != restored, "get_config: a network that is created from it has other vectors:"
        )
    check_training(config, {} if quick else _OTHER_STEPS, is_restored=not quick)
