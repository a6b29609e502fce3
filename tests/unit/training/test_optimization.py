"""Decay and layer of every weight."""

import pytest

from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.optimization import create_optimizer, layer_of
from tests.helpers.tiny import tiny_config

# {name in a layer: whether it is decayed}
BLOCK = {
    **{
        f"attention/{name}_kernel": True for name in ("query", "key", "value", "position", "output")
    },
    "attention/segment_embedding": True,
    "attention_norm/gamma": False,
    "attention_norm/beta": False,
    "feed_forward/inner_kernel": True,
    "feed_forward/inner_bias": False,
    "feed_forward/outer_kernel": True,
    "feed_forward/outer_bias": False,
    "feed_forward_norm/gamma": False,
    "feed_forward_norm/beta": False,
}
BIASES = ("content_bias", "position_bias", "segment_bias")


@pytest.mark.parametrize("untie_r", [True, False])
def test_decay_and_layer_of_every_variable(untie_r):
    """The names are those that checkpoints and exclusions rely on: all of them, written out."""
    num_layers = 11
    config = tiny_config(num_layers=num_layers, untie_r=untie_r, d_model=4, d_inner=3)
    model = XLNetPretrainer(config)
    optimizer = create_optimizer(config.training, num_layers)
    optimizer.build(model.trainable_variables)
    wanted = {"word_embedding/embeddings": (True, 0), "mask_embedding": (True, 0)}
    block = BLOCK | {f"attention/{name}": False for name in BIASES if untie_r}
    for n in range(num_layers):
        wanted |= {f"layer_{n}/{name}": (decayed, n + 1) for name, decayed in block.items()}
    if not untie_r:
        wanted |= {f"shared_biases/{name}": (False, num_layers) for name in BIASES}
    wanted = {f"xlnet_encoder/{name}": value for name, value in wanted.items()}
    names = [variable.name.removesuffix(":0") for variable in model.trainable_variables]
    decayed = map(optimizer.is_decayed, model.trainable_variables)
    layers = [layer_of(name, num_layers) for name in names]
    got = dict(zip(names, zip(decayed, layers, strict=True), strict=True))
    assert got == wanted | {"lm_head/bias": (False, num_layers)}
    assert len(names) == len(got)
