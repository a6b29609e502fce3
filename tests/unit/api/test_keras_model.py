"""`load_model`: a folder as a plain Keras model that takes texts."""

import os

import numpy as np
import pytest
import tensorflow as tf

from official import xlnet
from official.xlnet.errors import ConfigError, StoppedError
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.tiny import randomize, tiny_config

TEXTS = ["the water may find", "but not made. now", "first", ""]
PAIRS = [("a b", "water", "now"), ("not", "made first", "but")]
PROBABILITIES = {"classification": tf.nn.softmax, "multi_label": tf.sigmoid}
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def predicted(folder, texts=TEXTS):
    rows = xlnet.predict(folder, texts)
    return [list(row.get("probabilities", {"": row.get("score")}).values()) for row in rows]


def values(model, kind, texts=TEXTS):
    return PROBABILITIES.get(kind, tf.identity)(model.predict(texts, verbose=0)).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["xlnet", "hf", "tf1"])
@pytest.mark.parametrize("kind", ["classification", "multi_label", "regression"])
def test_a_folder_in_each_format(world, tmp_path, kind, form):
    """Logits in the order of the labels, or in their units; one text, or several by name."""
    folder, texts, given = world.task(kind).model, TEXTS, TEXTS
    names = xlnet.load_config(folder).task.text_columns
    if len(names) > 1:
        texts, given = PAIRS, tuple(map(list, zip(*PAIRS, strict=True)))
    if form != "xlnet":
        if (kind, form) == ("multi_label", "tf1"):
            return  # The release has no such head.
        xlnet.convert(folder, tmp_path / "there", form)
        folder = tmp_path / "there"
    model, expected = xlnet.load_model(folder), predicted(folder, texts)
    np.testing.assert_allclose(values(model, kind, given), expected, atol=1e-5)
    xlnet.save_pretrained(model, tmp_path / "again")
    np.testing.assert_allclose(predicted(tmp_path / "again", texts), expected, atol=1e-5)
    again = xlnet.load_model(tmp_path / "again")
    assert again.config.task.as_dict() == model.config.task.as_dict()
    if form == "xlnet":
        named = dict(zip(names, [given] if given is texts else given, strict=True))
        np.testing.assert_allclose(values(model, kind, named), expected, atol=1e-5)


@pytest.mark.slow
def test_from_a_folder_to_fit_on_strings(world, tmp_path):
    """Without a head; trained, saved in each form, and loaded again, texts go in everywhere."""
    keras.utils.set_random_seed(1)
    model = xlnet.load_model(world.pretrained, num_classes=2, max_length=23)
    model.compile(keras.optimizers.Adam(0.01), LOSS, ["accuracy"])
    labels = [1, 0, 1, 0]
    history = model.fit(TEXTS, labels, validation_data=(np.array(TEXTS), labels), epochs=30)
    losses = history.history["val_loss"]

    def stop(logs):
        raise KeyboardInterrupt

    with pytest.raises(StoppedError, match=r"^interrupted$"):
        model.fit(TEXTS, labels, callbacks=[keras.callbacks.LambdaCallback(on_train_begin=stop)])
    assert losses[-1] < 0.8 * losses[0]
    data = tf.data.Dataset.from_tensor_slices((TEXTS, labels)).batch(3)
    assert model.evaluate(data, verbose=0)[0] == pytest.approx(losses[-1], rel=1e-4)

    wanted = model.predict(TEXTS, verbose=0)
    xlnet.save_pretrained(model, tmp_path / "ours", labels=["bad", "good"])
    np.testing.assert_allclose(predicted(tmp_path / "ours"), tf.nn.softmax(wanted), atol=1e-5)
    task = xlnet.load_config(tmp_path / "ours").task
    assert (task.labels, task.max_length) == (("bad", "good"), 23)
    names = ["model.keras"] if IS_KERAS_3 else ["model.keras", "saved"]
    for name in names:
        model.save(tmp_path / name)
        again = keras.models.load_model(tmp_path / name)
        np.testing.assert_allclose(again.predict(TEXTS, verbose=0), wanted, atol=1e-5)
    xlnet.save_pretrained(model, tmp_path / "of_keras")
    np.testing.assert_allclose(predicted(tmp_path / "of_keras"), tf.nn.softmax(wanted), atol=1e-5)


@pytest.mark.slow
def test_a_functional_model_of_texts(world, tmp_path):
    source = world.pretrained
    preprocessor = xlnet.Preprocessor(xlnet.load_tokenizer(source), xlnet.load_config(source).task)
    texts, encoder = keras.Input([], dtype=tf.string), xlnet.load_encoder(source)
    score = keras.layers.Dense(1)(encoder(preprocessor(texts))["content"][:, -1])
    model = keras.Model(texts, score)
    model.compile("adam", "mse")
    texts_of_rows = tf.constant(TEXTS)  # Keras 3 refuses texts_of_rows of strings.
    model.fit(texts_of_rows, np.zeros(4), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    wanted = model.predict(texts_of_rows, verbose=0)
    np.testing.assert_allclose(again.predict(texts_of_rows, verbose=0), wanted, atol=1e-5)
    with pytest.raises(ConfigError, match="for inputs of Keras there is the layer `Preprocessor`"):
        xlnet.GraphTokenizer(xlnet.load_tokenizer(source))(texts)


@pytest.mark.slow
@pytest.mark.parametrize("long_texts", ["windows", "memory"])
def test_long_texts_in_parts(tmp_path, long_texts):
    vocabulary = os.path.join(vocabulary_dir(211), "spiece.model")
    settings = {"max_length": 9, "max_windows": 3, "window_stride": 3, "long_texts": long_texts}
    settings = {f"task.{key}": value for key, value in settings.items()}
    config = tiny_config(name="classification", labels="[a, b]", vocab_size=211, **settings)
    model = xlnet.XLNetTaskModel(config)
    randomize(model.variables, 3)
    xlnet.save_pretrained(model, tmp_path / "model", vocabulary)
    texts = ["the water may find but not made first " * n for n in (1, 2, 5)]
    found = values(xlnet.load_model(tmp_path / "model"), "classification", texts)
    np.testing.assert_allclose(found, predicted(tmp_path / "model", texts), atol=1e-5)


def test_name_precision_and_training_of_a_loaded_encoder(world):
    plain = xlnet.load_encoder(world.pretrained)
    options = {"name": "mine", "trainable": False, "dtype": "mixed_bfloat16"}
    encoder = xlnet.load_encoder(world.pretrained, **options)
    assert encoder.name == "mine" != plain.name
    assert len(plain.trainable_weights) == len(encoder.non_trainable_weights) > 0
    assert not encoder.trainable_weights and not encoder.trainable
    for weight, expected in zip(encoder.weights, plain.weights, strict=True):
        assert weight.dtype == expected.dtype
        np.testing.assert_array_equal(weight.numpy(), expected.numpy())
    ids = np.random.default_rng(0).integers(9, 60, (2, 7), np.int32)
    vectors, expected = encoder(ids)["content"], plain(ids)["content"]
    assert vectors.dtype == tf.bfloat16 and expected.dtype == tf.float32
    np.testing.assert_allclose(tf.cast(vectors, tf.float32), expected, atol=0.1)


@pytest.mark.slow
def test_what_has_no_classifier(world):
    model = xlnet.load_model(world.task("ranking").model)
    assert isinstance(model, xlnet.XLNetTaskModel)
    with pytest.raises(ConfigError, match="num_classes: expected the number of a new head's"):
        xlnet.load_model(world.pretrained)
    encoder = xlnet.load_encoder(world.pretrained)
    with pytest.raises(ConfigError, match=r"task\.name without num_classes: expected one of class"):
        xlnet.XLNetClassifier(encoder)
    with pytest.raises(ConfigError, match="inputs: expected token ids, as the model has no prepr"):
        xlnet.XLNetClassifier(encoder, 2)(tf.constant(TEXTS))
