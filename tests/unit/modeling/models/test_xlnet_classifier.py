"""The plain Keras classifier: its logits, training, saving, and what it does with padding."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official import xlnet
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.tokenization.packing import pack_columns
from tests.helpers.tiny import VOCAB, randomize, tiny_config, tiny_encoder

CLASSES = 3


def classifier(seed=0, **changes):
    model = XLNetClassifier(tiny_encoder(seed, **changes), CLASSES)
    randomize(model.variables, seed)
    return model


def packed(*lengths, length=17, seed=0):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(9, VOCAB, n).tolist() for n in lengths]
    inputs = pack_columns([ids], length)
    inputs["token_ids"][inputs["is_padding"]] = 5
    return inputs


def test_logits_are_those_of_the_task_model():
    config = tiny_config(name="classification", labels="[a, b, c]", mem_len=0)
    task = XLNetTaskModel(config)
    randomize(task.encoder.variables + task.head.variables, 1)
    model = XLNetClassifier(task.encoder, CLASSES)
    model.sequence_summary.set_weights(task.head.summary.get_weights())
    model.logits.set_weights(task.head.logits.get_weights())
    inputs = packed(5, 0, 11, 15)
    expected = task({name: x[:, None] for name, x in inputs.items()})["logits"]
    logits = model(inputs)
    assert logits.shape == (4, CLASSES) and logits.dtype == tf.float32
    np.testing.assert_allclose(logits, expected, atol=1e-6)


@pytest.mark.parametrize("memory", [0, 7])
def test_token_ids_alone_are_single_texts(memory):
    model, inputs = classifier(mem_len=memory), packed(5, 0, 11, 15)
    np.testing.assert_allclose(model(inputs["token_ids"]), model(inputs), atol=1e-5)
    for row, length in enumerate((5, 0, 11, 15)):
        alone = inputs["token_ids"][row : row + 1, -length - 2 :]
        np.testing.assert_allclose(model(alone)[0], model(inputs)[row], atol=1e-5)


def test_rows_are_independent():
    model, inputs = classifier(), packed(5, 7, 11)
    logits = model(inputs)
    changed = {name: x.copy() for name, x in inputs.items()}
    changed["token_ids"][1, -3] = 9 + (changed["token_ids"][1, -3] + 1 - 9) % (VOCAB - 9)
    different = np.abs(model(changed) - logits).max(axis=1) > 1e-6
    assert different.tolist() == [False, True, False]


def compiled(model, **settings):
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf_keras.optimizers.Adam(0.01), loss, ["accuracy"], **settings)
    return model


@pytest.mark.parametrize("as_dictionary", [True, False])
def test_it_learns_and_is_saved_whole(tmp_path, as_dictionary):
    tf_keras.utils.set_random_seed(1)
    model = compiled(XLNetClassifier(tiny_encoder(mem_len=0, dropout=0.1), CLASSES))
    inputs, labels = packed(*[9] * 24), np.arange(24) % CLASSES
    inputs["token_ids"][:, -4] = 20 + labels
    inputs = inputs if as_dictionary else inputs["token_ids"]
    before = model.evaluate(inputs, labels, verbose=0)[0]
    model.fit(inputs, labels, batch_size=8, epochs=20, verbose=0)
    loss, accuracy = model.evaluate(inputs, labels, verbose=0)
    assert loss < before / 2 and accuracy > 0.9
    expected = model.predict(inputs, verbose=0)
    model.save(f"{tmp_path}/model.keras")
    again = tf_keras.models.load_model(f"{tmp_path}/model.keras")
    np.testing.assert_allclose(again.predict(inputs, verbose=0), expected, atol=1e-6)
    again.fit(inputs, labels, verbose=0)
    model.save_weights(f"{tmp_path}/weights.h5")
    other = XLNetClassifier(tiny_encoder(1, mem_len=0), CLASSES)
    other.load_weights(f"{tmp_path}/weights.h5")
    np.testing.assert_allclose(other.predict(inputs, verbose=0), expected, atol=1e-6)
    model.save(f"{tmp_path}/saved")
    exported = tf.saved_model.load(f"{tmp_path}/saved")
    tensors = tf.nest.map_structure(tf.constant, inputs)
    np.testing.assert_allclose(exported(tensors, training=False), expected, atol=1e-5)


def test_every_weight_that_is_trained_has_a_gradient():
    model, inputs = classifier(), packed(5, 11)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs, training=True) ** 2)
    gradients = tape.gradient(loss, model.trainable_weights)
    assert None not in gradients and len(gradients) == len(model.weights) - 1
    model.encoder.trainable = False
    assert len(model.trainable_weights) == 4


def test_dropout_only_in_training():
    model, inputs = classifier(dropout=0.5), packed(5, 11)
    np.testing.assert_array_equal(model(inputs), model(inputs))
    assert np.abs(model(inputs, training=True) - model(inputs, training=True)).max() > 1e-3


def test_with_a_trained_encoder_and_its_tokenizer(tmp_path, vocab_file):
    encoder = tiny_encoder(vocab_size=2000)
    xlnet.save_pretrained(encoder, str(tmp_path), vocab_file)
    tokenizer = xlnet.load_tokenizer(str(tmp_path))
    model = xlnet.XLNetClassifier(xlnet.load_encoder(str(tmp_path)), num_classes=2)
    pairs = tokenizer(["now", "what they said"], ["then", "who is it"])
    assert model.predict(pairs, verbose=0).shape == (2, 2)
