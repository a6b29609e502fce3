"""The networks with absolute positions, by their properties (outputs: tests/real)."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.training.optimization import layer_of
from tests.helpers.compare import path_of
from tests.helpers.tiny import LAYERS, TOKENS, VOCAB, randomize, tiny_config

POSITIONS = 17
KINDS = {"bert": "denoising", "gpt": "causal", "gpt2": "causal"}


def rival(network="bert", **changes):
    """The tiny configuration with another network."""
    sizes = {"mem_len": 0, "bidirectional": False, "max_positions": POSITIONS}
    sizes["attention_type"] = "bi" if network == "bert" else "uni"
    return tiny_config(kind=KINDS[network], network=network, **{**sizes, **changes})


def rival_encoder(network="bert", **changes):
    encoder = NETWORKS[network](rival(network, **changes))
    encoder.build()
    randomize(encoder.variables)
    return encoder


def random_ids(seed, batch=3, tokens=TOKENS):
    return np.random.default_rng(seed).integers(9, VOCAB, [batch, tokens]).astype(np.int32)


def depends_on(encoder, ids, **inputs):
    """depends[i, j]: whether the vector at i of any row changes with the token at j."""
    content = encoder({"token_ids": ids, **inputs})["content"]
    columns = []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[:, j] = 9 + (ids[:, j] - 8) % (VOCAB - 9)
        other = encoder({"token_ids": changed, **inputs})["content"]
        columns.append(np.abs(content - other).max(axis=(0, 2)) > 1e-6)
    return np.stack(columns, axis=1)


@pytest.mark.quick
def test_who_sees_whom():
    ids = random_ids(6, batch=2, tokens=5)
    bert = rival_encoder()
    order = np.array([[2, 0, 1, 0, 2]] * 2)
    expected = np.array(
        [
            [1, 1, 1, 1, 1],
            [0, 1, 0, 1, 0],
            [0, 1, 1, 1, 0],
            [0, 1, 0, 1, 0],
            [1, 1, 1, 1, 1],
        ],
        bool,
    )
    np.testing.assert_array_equal(depends_on(bert, ids, order=order), expected)
    np.testing.assert_array_equal(
        depends_on(bert, ids, perm_mask=np.stack([~expected] * 2)), expected
    )
    inputs = {"token_ids": ids, "order": tf.constant(order)}
    scores = bert(inputs, return_attention_scores=True)["attention_scores"].numpy()
    assert scores.shape == (bert.model.num_layers, 2, bert.model.num_heads, 5, 5)
    np.testing.assert_array_equal(scores > 0, np.broadcast_to(expected, scores.shape))
    np.testing.assert_allclose(scores.sum(-1), 1, atol=1e-6)
    causal = rival_encoder(attention_type="uni")
    np.testing.assert_array_equal(depends_on(causal, ids), np.tri(5, dtype=bool))


@pytest.mark.parametrize("network", KINDS)
def test_every_layer_is_known(network):
    # Names as they are in a model, below the encoder's.
    names = [path_of(v) for v in XLNetPretrainer(rival(network)).trainable_variables]
    layers_of = [layer_of(name, LAYERS) for name in names]
    own = {"bert": 5, "gpt": 2, "gpt2": 2}[network]  # Embeddings and their layer norm.
    assert layers_of[:own] == [0] * own
    assert layers_of[own:] == [1] * 16 + [2] * 16 + [2] * (len(names) - own - 32)


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("mem_len=3", "model.mem_len: expected 0 with model.network=bert, got 3"),
        ("recompute=block", "model.recompute: expected 'none' with model.network=bert"),
        ("clamp_len=5", "model.clamp_len: expected 0 with model.network=bert"),
        (
            "kind=permutation",
            "objective.kind: expected denoising or causal with model.network=bert",
        ),
        ("bidirectional=true", "data.bidirectional: expected false with model.network=bert"),
        ("seq_len=18", "data.seq_len: expected at most model.max_positions = 17"),
        ("network=gpt", "model.attention_type: expected 'uni' with model.network=gpt"),
    ],
)
def test_settings_that_it_does_not_have(override, sentence):
    config = rival()
    config.set(override)
    with pytest.raises(ConfigError, match=sentence):
        config.check()


@pytest.mark.parametrize("network", ["bert", "gpt2"])
def test_products_are_rounded_and_dropout_repeats_with_its_seed(network):
    encoder, ids = rival_encoder(network, dropout=0.3, dropatt=0.4), random_ids(0)
    plain = encoder(ids)["content"]
    with matmul_precision("bfloat16"):
        rounded = encoder(ids)["content"]
    assert 1e-4 < np.abs(rounded - plain).max() < 0.1
    inputs = [{"token_ids": ids, "dropout_seed": [seed, 7]} for seed in (1, 1, 2)]
    first, again, other = (encoder(each, training=True)["content"].numpy() for each in inputs)
    np.testing.assert_array_equal(again, first)
    assert np.abs(first - plain).max() > 0.1 and np.abs(other - first).max() > 0.1
