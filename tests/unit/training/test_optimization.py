"""Decay and layer of every weight."""

import collections

import pytest
import tensorflow as tf

from official.xlnet import add_lora
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training import optimization
from official.xlnet.training.optimization import Muon, create_optimizer, layer_of
from tests.helpers.compare import path_of
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


@pytest.mark.parametrize("untie_r", [True, pytest.param(False, marks=pytest.mark.slow)])
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
    names = list(map(path_of, model.trainable_variables))
    decayed = map(optimizer.is_decayed, model.trainable_variables)
    layers = [layer_of(optimizer.path_of(v), num_layers) for v in model.trainable_variables]
    got = dict(zip(names, zip(decayed, layers, strict=True), strict=True))
    assert got == wanted | {"lm_head/bias": (False, num_layers)}
    assert len(names) == len(got)


@pytest.mark.parametrize("is_added", [True, False])
def test_adapters_have_the_layer_of_their_block(is_added):
    """Of a model that is built, and of one that is made with them, as from a file."""
    config = tiny_config(num_layers=3)
    model = XLNetPretrainer(config, lora_rank=0 if is_added else 2)
    if is_added:
        add_lora(model, 2)
    optimizer = create_optimizer(config.training, 3)
    optimizer.build(model.trainable_variables)
    layers = [layer_of(optimizer.path_of(v), 3) for v in model.trainable_variables]
    num_factors = 2 * 6  # Of four kernels of attention, and two of the feed-forward network.
    assert collections.Counter(layers) == {1: num_factors, 2: num_factors, 3: num_factors}


def test_an_update_knows_the_layer_of_every_variable(monkeypatch):
    """It gets a variable of TensorFlow, which has a short name with Keras 3."""
    rates, matrices = [], []
    rate_of, orthogonalized = Muon.rate_of, optimization.orthogonalized

    def noted_rate(self, variable):
        rates.append(float(rate_of(self, variable)) / float(self.step.rate))
        return rate_of(self, variable)

    def noted_matrix(matrix):
        matrices.append(matrix.shape)
        return orthogonalized(matrix)

    monkeypatch.setattr(Muon, "rate_of", noted_rate)
    monkeypatch.setattr(optimization, "orthogonalized", noted_matrix)
    config = tiny_config(num_layers=3, layer_decay=0.5, optimizer="muon")
    model = XLNetPretrainer(config)
    model.compile(create_optimizer(config.training, 3))
    model.update([tf.ones(variable.shape) for variable in model.trainable_variables])
    assert rates == [0.125] * 2 + [rate for rate in (0.25, 0.5, 1.0) for _ in range(17)] + [1.0]
    assert len(matrices) == 3 * 7  # Of attention five, of the feed-forward network two.
