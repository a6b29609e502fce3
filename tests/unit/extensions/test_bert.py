"""The networks with absolute positions, by their properties (outputs: tests/real)."""

import numpy as np
import pytest
import tensorflow as tf
from official.nlp.modeling import layers

from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.training.optimization import layer_of
from tests.helpers.tiny import LAYERS, TOKENS, VOCAB, WIDTH, randomize, tiny_config

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


def test_head_is_the_masked_lm_of_the_model_garden():
    encoder = rival_encoder()
    head = encoder.lm_head_class.of(rival().model, name="lm_head")
    head.build()
    randomize(head.variables, 5)
    table = encoder.get_embedding_table()
    gelu = lambda x: keras.activations.gelu(x, approximate=True)  # noqa: E731
    theirs = layers.MaskedLM(table, activation=gelu)
    hidden = np.random.default_rng(3).standard_normal([3, TOKENS, WIDTH]).astype(np.float32)
    positions = tf.constant([[1, 5], [12, 0], [7, 7]])
    theirs(hidden, positions)
    theirs.dense.set_weights(head.dense.get_weights())
    theirs.layer_norm.set_weights(head.layer_norm.get_weights())
    theirs.bias.assign(head.bias)
    got = head(tf.gather(hidden, positions, batch_dims=1), table)
    np.testing.assert_allclose(got, theirs(hidden, positions), atol=1e-5)


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
    names = [v.name for v in XLNetPretrainer(rival(network)).trainable_variables]
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
        ("products=bfloat16", "training.products: expected float32 with model.network=bert"),
        ("seq_len=18", "data.seq_len: expected at most model.max_positions = 17"),
        ("network=gpt", "model.attention_type: expected 'uni' with model.network=gpt"),
    ],
)
def test_settings_that_it_does_not_have(override, sentence):
    config = rival()
    config.set(override)
    with pytest.raises(ConfigError, match=sentence):
        config.check()


def test_its_layers_do_not_round_to_bfloat16():
    encoder = rival_encoder()
    with (
        matmul_precision("bfloat16"),
        pytest.raises(ConfigError, match="products: expected float32"),
    ):
        encoder(random_ids(0))
