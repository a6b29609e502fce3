"""The functional view of an encoder: its values and gradients, cuts, files, adapters, memory."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import XLNetEncoder, add_lora, merge_lora
from official.xlnet.errors import ConfigError
from official.xlnet.modeling.depth.stacked import StackedDepth
from official.xlnet.modeling.networks.encoder import Encoder
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.tokenization.special_tokens import PAD_ID
from tests.helpers.tiny import (
    BATCH,
    LAYERS,
    MEMORY,
    TOKENS,
    VOCAB,
    random_inputs,
    randomize,
    tiny_config,
    tiny_encoder,
)


def padded_ids(seed=1):
    ids = np.random.default_rng(seed).integers(9, VOCAB, (BATCH, TOKENS), np.int32)
    ids[0, :4] = ids[1, -3:] = PAD_ID
    return ids


def cut(view, layer):
    return keras.Model(view.input, view.get_layer(layer).output)


@pytest.mark.parametrize("untie_r", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_each_layer_is_that_of_the_encoder(untie_r):
    encoder, ids = tiny_encoder(untie_r=untie_r), padded_ids()
    view, expected = encoder.functional(), encoder(ids, return_hidden_states=True)
    outputs = view(ids)
    assert outputs.keys() == {"content", "memory"} and len(view.inputs) == 1
    for name, value in outputs.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5)
    layers = ["embeddings", *(f"layer_{n}" for n in range(LAYERS))]
    for layer, hidden in zip(layers, expected["hidden_states"], strict=True):
        output = view.get_layer(layer).output
        model = keras.Model(view.input, output[0] if layer == "embeddings" else output)
        np.testing.assert_allclose(model.predict(ids, verbose=0), hidden, atol=1e-5)
    of_encoder = {id(x) for x in encoder.weights if x is not encoder.mask_embedding}
    assert {id(x) for x in view.weights} == of_encoder
    assert {id(x) for x in cut(view, "layer_0").weights} < of_encoder


def test_all_inputs_and_the_memory():
    encoder, everything = tiny_encoder(), random_inputs(2, memory=MEMORY, padding=True)
    names = ["token_ids", "segment_ids", "is_padding", "is_reversed", "memory", "memory_length"]
    inputs = {name: everything[name] for name in names if name in everything}
    inputs |= {
        "is_reversed": np.arange(BATCH) % 2 == 1,
        "memory_length": np.arange(BATCH, dtype=np.int32),
    }
    outputs, expected = encoder.functional(names)(inputs), encoder(inputs)
    for name in ("content", "memory"):
        np.testing.assert_allclose(outputs[name], expected[name], atol=1e-5)


def test_gradients_with_respect_to_the_output_of_a_block():
    """The last bias of a block is added to its output: its gradient is the sum over tokens."""
    encoder, ids = tiny_encoder(mem_len=0), padded_ids()
    biases = [block.feed_forward_norm.beta for block in encoder.blocks]
    wanted = np.random.default_rng(0).standard_normal((BATCH, TOKENS, 1)).astype(np.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(wanted * encoder(ids)["content"] ** 2)
    expected = tape.gradient(loss, [x if isinstance(x, tf.Variable) else x.value for x in biases])
    view = encoder.functional()
    blocks = [view.get_layer(f"layer_{n}").output for n in range(LAYERS)]
    model = keras.Model(view.input, [*blocks, view.output["content"]])
    with tf.GradientTape() as tape:
        *hidden, content = model(ids)
        loss = tf.reduce_sum(wanted * content**2)
    for found, of_bias in zip(tape.gradient(loss, hidden), expected, strict=True):
        np.testing.assert_allclose(tf.reduce_sum(found, [0, 1]), of_bias, atol=1e-4)


@pytest.mark.slow
def test_padding_is_left_out_and_a_part_is_trained_and_saved(tmp_path):
    encoder, ids = tiny_encoder(mem_len=0), padded_ids()
    view = encoder.functional()
    hidden = view.get_layer("layer_0").output
    beside = keras.layers.MultiHeadAttention(2, 3)(hidden, hidden)  # Deletes masks in Keras 3.
    pool = keras.layers.GlobalAveragePooling1D
    both = keras.layers.Concatenate()([keras.layers.GRU(3)(hidden), pool()(beside)])
    model = keras.Model(view.input, keras.layers.Dense(1)(both))
    for row, tokens in ((0, slice(4, None)), (1, slice(0, -3))):
        alone = model(ids[row : row + 1, tokens])
        np.testing.assert_allclose(model(ids)[row : row + 1], alone, atol=1e-5)

    before = encoder.blocks[0].attention.query_kernel.numpy()
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(ids, np.ones([BATCH, 1]), verbose=0)
    assert np.abs(encoder.blocks[0].attention.query_kernel.numpy() - before).max() > 1e-6
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(ids), model(ids), atol=1e-5)
    parts = [part for part in loaded.layers if hasattr(part, "encoder")]
    assert len({id(part.encoder) for part in parts}) == 1
    model.save_weights(tmp_path / "model.weights.h5")
    randomize(loaded.weights)
    loaded.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_allclose(loaded(ids), model(ids), atol=1e-5)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    np.testing.assert_allclose(clone(ids), model(ids), atol=1e-5)
    assert not {id(x) for x in clone.weights} & {id(x) for x in model.weights}


def nested(view):
    ids = keras.Input([None], dtype=tf.int32)
    return keras.Model(ids, keras.layers.GlobalAveragePooling1D()(view(ids)["content"]))


def parts_of(model):
    return [layer for layer in model._flatten_layers() if hasattr(layer, "encoder")]


def from_config(model):
    return type(model).from_config(model.get_config())


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "copy, model_of",
    [
        (keras.models.clone_model, lambda view: view),
        pytest.param(from_config, lambda view: view, marks=SLOW),
        pytest.param(keras.models.clone_model, lambda view: cut(view, "layer_1"), marks=SLOW),
        pytest.param(keras.models.clone_model, nested, marks=SLOW),
        pytest.param(from_config, nested, marks=SLOW),
    ],
    ids=["clone", "config", "clone of a part", "nested clone", "nested config"],
)
def test_a_copy_has_one_encoder(copy, model_of):
    """With biases that blocks share, parts of several encoders would have more weights."""
    encoder, ids = tiny_encoder(untie_r=False, mem_len=0), padded_ids()
    model = model_of(encoder.functional())
    copies = [copy(model) for _ in range(2)]
    encoders = {id(part.encoder) for copied in copies for part in parts_of(copied)}
    assert len(encoders) == 2 and id(encoder) not in encoders
    for copied in copies:
        copied.set_weights(model.get_weights())
        assert_same_outputs(copied(ids), model(ids))
    randomize(copies[0].weights)
    assert_same_outputs(copies[1](ids), model(ids))


def assert_same_outputs(found, expected):
    found, expected = tf.nest.flatten(found), tf.nest.flatten(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)


def test_a_frozen_block_is_frozen_in_a_file_too(tmp_path):
    view = tiny_encoder(mem_len=0).functional()
    num_weights = len(view.trainable_weights)
    view.get_layer("layer_0").trainable = False
    num_frozen = len(view.get_layer("layer_0").weights)
    view.save(tmp_path / "view.keras")
    for model in (view, keras.models.load_model(tmp_path / "view.keras")):
        assert len(model.trainable_weights) == num_weights - num_frozen


@pytest.mark.parametrize("is_viewed_first", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_adapters_are_trained_saved_and_merged(is_viewed_first, tmp_path):
    encoder, ids = tiny_encoder(mem_len=0), padded_ids()
    view = encoder.functional() if is_viewed_first else None
    add_lora(encoder, 2)
    view = view or encoder.functional()
    randomize(encoder.lora.variables)
    trainable = {id(x) for x in encoder.lora.trainable_weights}
    assert {id(x) for x in view.trainable_weights} == trainable
    expected = encoder(ids)["content"]
    np.testing.assert_allclose(view(ids)["content"], expected, atol=1e-5)
    half = cut(view, "layer_0")
    half.save(tmp_path / "half.keras")
    loaded = keras.models.load_model(tmp_path / "half.keras")
    np.testing.assert_allclose(loaded(ids), half(ids), atol=1e-5)
    assert len(loaded.trainable_weights) == len(trainable) / LAYERS
    half.save_weights(tmp_path / "half.weights.h5")
    with pytest.raises(ValueError, match="expected a model with adapters"):
        cut(tiny_encoder(mem_len=0).functional(), "layer_0").load_weights(
            tmp_path / "half.weights.h5"
        )
    merge_lora(encoder)
    np.testing.assert_allclose(view(ids)["content"], expected, atol=1e-5)
    assert len(view.weights) == len(view.trainable_weights) == len(encoder.weights) - 1


def test_dropout_is_of_training_alone():
    view, ids = tiny_encoder(dropout=0.3, mem_len=0).functional(), padded_ids()
    first, second = (view(ids, training=True)["content"] for _ in range(2))
    assert np.abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(view(ids)["content"], view(ids)["content"])


class Other(Encoder):
    """Another network."""


class Encoded(StackedDepth):
    """A depth with more than blocks."""

    def encoded(self, layer, hidden_states):
        return hidden_states + layer


def test_what_has_no_view_is_told():
    encoder = XLNetEncoder(tiny_config())
    for names, message in (
        (["is_padding"], "inputs: expected token_ids among them"),
        (["token_ids", "target_positions"], "inputs: expected .*memory_length.*target_positions"),
    ):
        with pytest.raises(ConfigError, match=message):
            encoder.functional(names)
    with pytest.raises(ConfigError, match="functional: expected an XLNetEncoder, got Other"):
        Other(tiny_config()).functional()
    encoder.depth = Encoded()
    with pytest.raises(ConfigError, match=r"functional: model\.depth: expected one"):
        encoder.functional()
