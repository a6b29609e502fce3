"""The encoder as a Keras user has it: what it takes, returns, refuses, and in whose model it is."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.modeling.ops.keras import keras
from tests.helpers.tiny import (
    BATCH,
    LAYERS,
    MEMORY,
    TOKENS,
    VOCAB,
    WIDTH,
    random_inputs,
    tiny_config,
    tiny_encoder,
)


@pytest.mark.parametrize("changes", [{}, {"untie_r": False}, {"num_layers": 3, "d_inner": 31}])
def test_the_number_of_parameters_is_known_without_building(changes):
    encoder = XLNetEncoder(tiny_config(**changes))
    encoder.build()
    assert encoder.config.model.num_parameters == encoder.count_params()


def test_hidden_states():
    encoder = tiny_encoder()
    inputs = random_inputs(1, memory=MEMORY, padding=True)
    outputs = encoder(inputs, return_hidden_states=True)
    hidden = outputs["hidden_states"]
    assert hidden.shape == [LAYERS + 1, BATCH, TOKENS, WIDTH]
    np.testing.assert_array_equal(hidden[-1], outputs["content"])
    np.testing.assert_array_equal(
        hidden[0], tf.gather(encoder.word_embedding.embeddings, inputs["token_ids"])
    )
    shapes = encoder.compute_output_shape([None, TOKENS])
    assert [*shapes["content"]] == [None, TOKENS, WIDTH]
    assert tf.TensorShape(shapes["memory"]).is_compatible_with(outputs["memory"].shape)
    # The memory holds the inputs of the layers.
    reused = encoder.reuse_len
    np.testing.assert_array_equal(outputs["memory"][:, :, -reused:], hidden[:-1, :, :reused])


def test_without_segments_all_are_one():
    """Everything else stays: memory, query stream, padding. HF's oracle is in tests/parity."""
    encoder = tiny_encoder(segments=False)
    inputs = random_inputs(1, memory=MEMORY, padding=True)
    one = {**inputs, "segment_ids": np.zeros_like(inputs["segment_ids"])}
    found, expected = encoder(inputs), encoder(one)
    assert found.keys() == expected.keys() > {"content", "query"}
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name], name)


def plain_scores(encoder, block, hidden_BTD, memory_BMD, inputs):
    """softmax of the score of appendix A.2, written out in float64."""
    attention = block.attention
    biases = encoder.shared_biases or attention.biases
    content_bias, position_bias, segment_bias = (
        x.numpy().astype(np.float64) for x in (biases.content, biases.position, biases.segment)
    )
    keys_BKD = np.concatenate([memory_BMD, hidden_BTD], axis=1).astype(np.float64)
    q = np.einsum("btd,dnh->btnh", hidden_BTD, attention.query_kernel)
    k = np.einsum("bkd,dnh->bknh", keys_BKD, attention.key_kernel)
    num_memory = memory_BMD.shape[1]
    position_K = np.arange(-num_memory, TOKENS)
    distance_TK = position_K[num_memory:, None] - position_K
    distance_BTK = distance_TK * np.where(inputs["is_reversed"], -1, 1)[:, None, None]
    angle_BTKC = distance_BTK[..., None] * 10000.0 ** (-np.arange(0, WIDTH, 2) / WIDTH)
    r = np.concatenate([np.sin(angle_BTKC), np.cos(angle_BTKC)], axis=-1)
    r = np.einsum("btkd,dnh->btknh", r, attention.position_kernel)
    segments = np.pad(inputs["segment_ids"], [(0, 0), (num_memory, 0)])
    is_other = segments[:, None, :] != inputs["segment_ids"][:, :, None]
    seg = attention.segment_embedding.numpy()[is_other.astype(int)]
    score = np.einsum("btnh,bknh->bntk", q + content_bias, k)
    score += np.einsum("btnh,btknh->bntk", q + position_bias, r)
    score += np.einsum("btnh,btknh->bntk", q + segment_bias, seg)
    hidden = (inputs["order"][:, None] > inputs["order"][..., None]) | inputs["is_padding"][:, None]
    can_attend = np.pad(~hidden, [(0, 0), (0, 0), (num_memory, 0)], constant_values=True)
    p = np.exp(score / np.sqrt(attention.d_head)) * can_attend[:, None]
    return p / np.maximum(p.sum(-1, keepdims=True), 1e-300)


@pytest.mark.parametrize("untie_r", [True, False])
def test_attention_scores(untie_r):
    encoder = tiny_encoder(untie_r=untie_r)
    inputs = random_inputs(2, memory=MEMORY, padding=True, directions=True, order="all")
    outputs = encoder(inputs, return_attention_scores=True, return_hidden_states=True)
    scores = outputs["attention_scores"]
    assert scores.shape == [LAYERS, BATCH, 2, TOKENS, MEMORY + TOKENS]
    assert scores.dtype == tf.float32
    is_real = ~inputs["is_padding"]
    for number, block in enumerate(encoder.blocks):
        hidden = outputs["hidden_states"][number].numpy()
        wanted = plain_scores(encoder, block, hidden, inputs["memory"][number], inputs)
        for b in range(BATCH):
            np.testing.assert_allclose(
                scores[number, b].numpy()[:, is_real[b]], wanted[b][:, is_real[b]], atol=1e-5
            )
    plain = encoder(inputs)
    np.testing.assert_allclose(outputs["content"], plain["content"], atol=1e-5)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (np.arange(5), r"expected the shape \[batch, tokens\], got \(5,\): .*token_ids\[None\]"),
        (np.zeros([2, 0], np.int32), r"at least one token, got the shape \(2, 0\)"),
        (np.zeros([2, 3], np.float32), "expected integers, got float32.*dtype=tf.int32"),
        (tf.ragged.constant([[9, 10], [11]]), r"got a ragged one: pad it with .to_tensor\(\)"),
        ({"order": np.zeros([2, 3], np.int32)}, "expected the encoder input 'token_ids'"),
        (
            dict.fromkeys(["token_ids", "tokens"], np.ones([2, 3], np.int32)),
            "unknown encoder inputs",
        ),
        (
            {
                "token_ids": np.ones([2, 3], np.int32),
                "order": np.ones([2, 3], np.int32),
                "perm_mask": np.zeros([2, 3, 3], bool),
            },
            "expected `order` or `perm_mask`, got both",
        ),
    ],
    ids=["one dimension", "no tokens", "floats", "ragged", "no ids", "unknown", "two orders"],
)
def test_wrong_inputs(inputs, message):
    with pytest.raises(ValueError, match=message):
        tiny_encoder()(inputs)


def test_ids_and_orders_of_other_sizes_are_named_and_a_model_around_it_trains_quietly(
    caplog, recwarn
):
    encoder, inputs = tiny_encoder(), random_inputs(1)
    ids = inputs["token_ids"]
    for name, wrong, message in (
        ("token_ids", ids + VOCAB, f"token_ids: expected ids from 0 to {VOCAB - 1}"),
        ("token_ids", ids - VOCAB, f"token_ids: expected ids from 0 to {VOCAB - 1}"),
        (
            "order",
            inputs["order"][:, 1:],
            r"order: expected the shape \[batch, tokens\] beside token_ids of .*13.*, got .*12",
        ),
        ("segment_ids", ids[:2], r"segment_ids: expected the shape \[batch, tokens\] beside"),
    ):
        with pytest.raises(ValueError, match=message):
            encoder({**inputs, name: wrong})
    assert repr(encoder) == "XLNetEncoder(2 layers of width 22, vocabulary of 53, 0.0 M parameters)"
    tokens = keras.Input([TOKENS], dtype=tf.int32)
    model = keras.Model(tokens, keras.layers.Dense(1)(encoder(tokens)["content"][:, -1]))
    model.compile("adam", "mse", run_eagerly=True)
    model.fit(ids, tf.zeros([BATCH, 1]), verbose=0)
    said = caplog.text + "".join(str(each.message) for each in recwarn)
    assert "Gradients do not exist" not in said


@pytest.mark.parametrize(
    "name",
    [
        *("order", "segment_ids", "is_padding", "is_reversed", "target_positions", "perm_mask"),
        *("memory", "memory_length"),
    ],
)
def test_an_input_with_an_axis_too_many_or_too_few_is_named(name):
    shapes = {"is_reversed": [3], "memory_length": [3], "memory": [2, 3, 7, 22]}
    shapes |= {"perm_mask": [3, 5, 5], "target_positions": [3, 2]}
    value = np.zeros(shapes.get(name, [3, 5]), np.float32 if name == "memory" else np.int32)
    inputs = {"token_ids": np.full([3, 5], 11, np.int32)}
    encoder = tiny_encoder()
    encoder({**inputs, name: value})
    for wrong in (value[..., None], value[None], value[:, None], value[0]):
        with pytest.raises(ValueError, match=rf"{name}: expected the shape \[.*batch.*, got"):
            encoder({**inputs, name: wrong})


def test_a_network_with_layers_of_the_other_keras_is_refused():
    other = "tf_keras" if keras.__name__ == "keras" else "keras"
    encoder = XLNetEncoder(tiny_config())
    layer = {"__module__": f"{other}.layers", "name": "layer_2", "build": lambda *_: None}
    encoder.blocks.append(type("Conv1D", (), layer)())
    with pytest.raises(
        ConfigError, match=r"XLNetEncoder: expected objects of .*\.Conv1D; .*KERAS=1"
    ):
        encoder.build()
