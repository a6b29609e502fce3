"""An encoder beside Keras' other layers does what `Embedding(mask_zero=True)` does in its place."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet import XLNetClassifier, XLNetEncoder, XLNetPretrainer, add_lora
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.tokenization.special_tokens import PAD_ID
from tests.helpers.tiny import VOCAB, tiny_config

LAYERS = keras.layers
LENGTH, NUM_PADDING = 7, 3


def attended(x):
    """Attention, which in Keras 3 deletes the mask that its inputs have while a model runs."""
    return LAYERS.MultiHeadAttention(2, 3)(x, x)


# {composition: from token vectors with a mask to the outputs of a text}
COMPOSITIONS = {
    "recurrent beside attention": lambda x: LAYERS.Concatenate()(
        [LAYERS.GRU(3)(x), LAYERS.GlobalAveragePooling1D()(attended(x))]
    ),
    "pooling after attention": lambda x: LAYERS.Concatenate()(
        [LAYERS.GlobalAveragePooling1D()(attended(x)), LAYERS.GlobalAveragePooling1D()(x)]
    ),
    "a sum with attention": lambda x: LAYERS.Bidirectional(LAYERS.LSTM(3))(
        LAYERS.Add()([x, attended(x)])
    ),
    "normalized": lambda x: LAYERS.GRU(3)(LAYERS.LayerNormalization()(LAYERS.Dropout(0.1)(x))),
}
ROWS = [
    name if name.startswith("recurrent") else pytest.param(name, marks=pytest.mark.slow)
    for name in COMPOSITIONS
]


def new_encoder():
    return XLNetEncoder(tiny_config(num_layers=1), reuse_len=0, mem_len=0)


def model_of(source, compose):
    """A functional model of token ids; with `padding`, also of where there is no token."""
    ids = keras.Input([None], dtype=tf.int32)
    if source == "embedding":
        return keras.Model(ids, compose(LAYERS.Embedding(VOCAB, 11, mask_zero=True)(ids)))
    if source == "ids":
        return keras.Model(ids, compose(new_encoder()(ids)["content"]))
    is_padding = keras.Input([None], dtype=tf.bool)
    content = new_encoder()({"token_ids": ids, "is_padding": is_padding})["content"]
    return keras.Model([ids, is_padding], compose(content))


@pytest.mark.parametrize("source", ["embedding", "ids", "padding"])
@pytest.mark.parametrize("name", ROWS)
def test_a_text_alone_and_in_a_padded_batch_and_from_a_file(name, source, tmp_path):
    keras.utils.set_random_seed(1)
    model = model_of(source, COMPOSITIONS[name])
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    is_padding = np.zeros([2, LENGTH], bool)
    is_padding[1, -NUM_PADDING:] = True
    if source != "padding":
        ids[is_padding] = 0 if source == "embedding" else PAD_ID

    def of(rows, length):
        arrays = [ids[rows, :length], is_padding[rows, :length]]
        return arrays if source == "padding" else arrays[0]

    batch = model(of(slice(2), LENGTH)).numpy()
    alone = model(of(slice(1, 2), LENGTH - NUM_PADDING)).numpy()
    np.testing.assert_allclose(batch[1:], alone, atol=1e-5)
    assert np.abs(batch[0] - batch[1]).max() > 1e-3
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(of(slice(2), LENGTH)), batch, atol=1e-6)


def test_a_mask_of_the_rows_that_are_asked_for():
    ids = keras.Input([LENGTH], dtype=tf.int32)
    content = new_encoder()(ids, num_content=5)["content"]
    model = keras.Model(ids, [LAYERS.GRU(3)(content), attended(content)])
    tokens = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    tokens[1, -1] = PAD_ID
    found, _ = model(tokens)
    gru = model.layers[-1] if isinstance(model.layers[-1], LAYERS.GRU) else model.layers[-2]
    encoder = next(layer for layer in model.layers if isinstance(layer, XLNetEncoder))
    rows = encoder(tokens, num_content=5)["content"]
    mask = tf.constant(tokens[:, -5:] != PAD_ID)
    np.testing.assert_allclose(found, gru(tf.identity(rows), mask=mask), atol=1e-5)


@keras.utils.register_keras_serializable("tests.in_company")
class Around(keras.Model):
    """A model of a user, around a part of this package."""

    def __init__(self, part, **kwargs):
        super().__init__(**kwargs)
        self.part, self.head = part, LAYERS.Dense(3)

    def call(self, inputs):
        outputs = self.part(inputs)
        vectors = outputs["content"][:, -1] if isinstance(outputs, dict) else outputs
        return self.head(vectors)

    def get_config(self):
        return {
            **super().get_config(),
            "part": keras.utils.serialize_keras_object(self.part),
        }

    @classmethod
    def from_config(cls, config):
        return cls(keras.utils.deserialize_keras_object(config.pop("part")), **config)


@pytest.mark.parametrize("part", ["embedding", "encoder", "classifier"])
def test_a_class_around_it_is_saved_and_loaded(part, tmp_path):
    parts = {
        "embedding": lambda: keras.Sequential(
            [LAYERS.Embedding(VOCAB, 11), LAYERS.GlobalAveragePooling1D()]
        ),
        "encoder": new_encoder,
        "classifier": lambda: XLNetClassifier(new_encoder(), 2),
    }
    model = Around(parts[part]())
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    expected = model.predict(ids, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded.predict(ids, verbose=0), expected, atol=1e-5)


def test_ids_of_another_type_are_refused_outside_of_building():
    message = "token_ids: expected integers, got {}: a Keras input needs dtype=tf.int32"
    if IS_KERAS_3:  # Floats of a functional model are taken where they hold every id.
        encoder = new_encoder()
        with pytest.raises(DataError, match=message.format("float16")):
            encoder(keras.Input([LENGTH], dtype=tf.float16))
    encoder = new_encoder()
    with pytest.raises(DataError, match=message.format("float32")):
        encoder(np.ones([2, LENGTH], np.float32))


@keras.utils.register_keras_serializable("tests.in_company")
class Content(LAYERS.Layer):
    """Chooses one of the outputs, as a sequential model needs it."""

    def call(self, outputs):
        return outputs["content"][:, -1] if isinstance(outputs, dict) else outputs[:, -1]


@pytest.mark.parametrize("source", ["embedding", "encoder"])
def test_a_sequential_model_without_inputs(source, tmp_path):
    """Keras 3 builds it with floats, whatever it is called with."""
    first = new_encoder() if source == "encoder" else LAYERS.Embedding(VOCAB, 11)
    model = keras.Sequential([first, Content(), LAYERS.Dense(3)])
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(ids, np.zeros([2, 3]), verbose=0)
    vectors = first(ids)["content"] if source == "encoder" else first(ids)
    expected = model.layers[-1](vectors[:, -1]).numpy()
    np.testing.assert_allclose(model(ids), expected, atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(ids), expected, atol=1e-6)


def test_two_encoders_in_one_model_have_names_of_their_own():
    ids = keras.Input([LENGTH], dtype=tf.int32)
    encoders = [new_encoder(), new_encoder(), XLNetEncoder(tiny_config(mem_len=0), name="mine")]
    outputs = LAYERS.Add()([encoder(ids)["content"] for encoder in encoders])
    model = keras.Model(ids, outputs)
    assert len({layer.name for layer in model.layers}) == len(model.layers)
    assert encoders[2].name == "mine" and encoders[0].name.startswith("xlnet_encoder")
    again = XLNetEncoder.from_config(encoders[1].get_config())
    assert again.name == encoders[1].name
    classifiers = [XLNetClassifier(encoder, 2).name for encoder in encoders]
    assert len(set(classifiers)) == 3


def test_adapters_before_a_model_is_built_around_the_encoder():
    encoder = new_encoder()
    add_lora(encoder, 2)
    model = keras.Sequential([encoder, Content(), LAYERS.Dense(3)])
    model.compile("sgd", "mse", run_eagerly=True)
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    frozen = [weight.numpy() for weight in encoder.non_trainable_weights]
    model.fit(ids, np.ones([2, 3]), verbose=0)
    assert len(model.trainable_weights) == len(encoder.lora.trainable_weights) + 2
    for weight, before in zip(encoder.non_trainable_weights, frozen, strict=True):
        np.testing.assert_array_equal(weight.numpy(), before)


@pytest.mark.slow
def test_a_classifier_is_exported_as_keras_does(tmp_path):
    model = XLNetClassifier(new_encoder(), 2)
    ids = np.random.default_rng(0).integers(9, VOCAB, (2, LENGTH), np.int32)
    model.export(str(tmp_path / "export"))
    served = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_allclose(served.serve(ids), model(ids), atol=1e-5)
    pretrainer = XLNetPretrainer(tiny_config(num_layers=1))
    with pytest.raises(ConfigError, match="export of XLNetPretrainer: expected a classifier"):
        pretrainer.export(str(tmp_path / "other"))
