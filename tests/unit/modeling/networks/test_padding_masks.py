"""Layers, losses and metrics of Keras leave out the padding of `content`, as its mask says."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.tiny import VOCAB, WIDTH, tiny_encoder

LAYERS = keras.layers
NUM_TOKENS, NUM_PADDING = 5, 4
attention = LAYERS.AdditiveAttention(), LAYERS.Attention(), LAYERS.MultiHeadAttention(2, 3)
normalization = LAYERS.BatchNormalization()
# Layers whose call takes a mask.
WITH_MASK = {
    "AdditiveAttention": lambda x: attention[0]([x, x]),
    "Attention": lambda x: attention[1]([x, x]),
    "BatchNormalization": lambda x: normalization(x, training=True),
    "Bidirectional": LAYERS.Bidirectional(LAYERS.LSTM(3)),
    "GRU": LAYERS.GRU(3, return_sequences=True),
    "GlobalAveragePooling1D": LAYERS.GlobalAveragePooling1D(),
    "LSTM": LAYERS.LSTM(3),
    "Lambda": LAYERS.Lambda(
        lambda x, mask: tf.reduce_sum(tf.where(mask[..., None], x, 0.0), axis=1)
    ),
    "MultiHeadAttention": lambda x: attention[2](x, x),
    "RNN": LAYERS.RNN(LAYERS.GRUCell(3)),
    "SimpleRNN": LAYERS.SimpleRNN(3),
    "TimeDistributed": LAYERS.TimeDistributed(LAYERS.Dense(3)),
}
# Layers whose mask is of images or of other layers, or has the shape of the inputs.
OTHERS = {"ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "Softmax"}
OTHERS |= {"Pipeline"} if IS_KERAS_3 else {"GroupNormalization"}
if IS_KERAS_3:
    grouped = LAYERS.GroupQueryAttention(3, 2, 1)
    WITH_MASK["GroupedQueryAttention"] = lambda x: grouped(x, x)


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder(num_layers=1, mem_len=0)


def inputs():
    """Ids of a text, and a batch with it, padded on the left."""
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, NUM_PADDING + NUM_TOKENS), np.int32)
    ids[0, :NUM_PADDING] = 5
    return ids[:1, NUM_PADDING:], ids


def test_the_table_has_all_layers_that_take_a_mask():
    layers = {kind for kind in vars(LAYERS).values() if hasattr(kind, "call")}
    takes_mask = {x.__name__ for x in layers if "mask" in str(inspect.signature(x.call))}
    assert takes_mask == {*WITH_MASK, *OTHERS}


@pytest.mark.parametrize("name", WITH_MASK)
def test_a_layer_gives_the_same_for_a_text_alone_and_in_a_padded_batch(encoder, name):
    alone, batch = inputs()
    wanted = WITH_MASK[name](encoder(alone)["content"])[0]
    found = WITH_MASK[name](encoder(batch[:1])["content"])[0]
    found = found[-NUM_TOKENS:] if len(found.shape) == 2 else found
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_losses_of_tokens_and_layers_of_a_functional_model(encoder):
    alone, batch = inputs()
    ids = keras.Input([None], dtype=tf.int32)
    content = LAYERS.Dropout(0.1)(encoder({"token_ids": ids})["content"])
    pooled = LAYERS.GlobalAveragePooling1D()(content)
    model = keras.Model(ids, [LAYERS.Dense(1)(content), LAYERS.Dense(1)(pooled)])
    model.compile("sgd", ["mse", None], weighted_metrics=[["mae"], None], run_eagerly=True)
    wanted = model.evaluate(alone, np.ones([1, NUM_TOKENS, 1]), verbose=0)
    found = model.evaluate(batch[:1], np.ones([1, NUM_TOKENS + NUM_PADDING, 1]), verbose=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    wanted = model.predict(alone, verbose=0)[1]
    np.testing.assert_allclose(model.predict(batch, verbose=0)[1][:1], wanted, atol=1e-5)


def test_the_mask_is_of_the_rows_of_content():
    encoder, (_, batch) = tiny_encoder(), inputs()
    is_padding = np.zeros([1, batch.shape[1]], bool)
    is_padding[0, -2] = True
    outputs = encoder({"token_ids": batch, "is_padding": is_padding}, num_content=3)
    assert outputs["content"].shape == (2, 3, WIDTH)
    mask = outputs["content"]._keras_mask.numpy().tolist()
    assert mask == [[True, False, True]] * 2
