"""The plain Keras classifier: its logits, training, saving, and what it does with padding."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official import xlnet
from official.xlnet.configs.registry import NETWORKS
from official.xlnet.errors import DataError
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.graph.tokenizer import GraphTokenizer
from tests.helpers.tiny import VOCAB, randomize, tiny_config, tiny_encoder

CLASSES = 3


def classifier(seed=0, **changes):
    model = XLNetClassifier(tiny_encoder(seed, **changes), CLASSES)
    randomize(model.variables, seed)
    return model


def packed(*lengths, length=17, seed=0):
    rng = np.random.default_rng(seed)
    ids = [rng.integers(9, VOCAB, n).tolist() for n in lengths]
    return pack_columns([ids], length)


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
def test_what_is_left_out_follows_from_the_token_ids(memory):
    """With each subset of the features, and of a row alone."""
    model, inputs = classifier(mem_len=memory), packed(5, 0, 11, 15)
    wanted, token_ids = model(inputs), inputs["token_ids"]
    for kept in ([], ["segment_ids"], ["is_padding"]):
        given = {name: inputs[name] for name in ["token_ids", *kept]}
        np.testing.assert_allclose(model(given), wanted, atol=1e-5)
    np.testing.assert_allclose(model(token_ids), wanted, atol=1e-5)
    for row, length in enumerate((5, 0, 11, 15)):
        np.testing.assert_allclose(
            model(token_ids[row : row + 1, -length - 2 :])[0], wanted[row], atol=1e-5
        )
    with pytest.raises(DataError, match="expected the encoder input 'token_ids', got only"):
        model({"is_padding": inputs["is_padding"]})


@pytest.fixture(scope="module")
def encoders():
    """One with random weights for each network."""
    result = []
    for network in ("xlnet", "bert"):
        changes = {"vocab_size": 2000, "network": network, "mem_len": 0, "num_layers": 1}
        if network == "bert":
            changes |= {"kind": "denoising", "bidirectional": False}
        encoder = NETWORKS[network](tiny_config(**changes))
        encoder.build()
        randomize(encoder.variables)
        result.append(encoder)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("num_texts", [1, 2, 3, 5])
def test_both_tokenizers_give_inputs_that_follow_from_their_ids(vocab_file, encoders, num_texts):
    texts = [["now", "then the people", ""], ["who is it", "", "a"], ["b", "c d", "e f g"]]
    texts += [["h", "", "i j"], ["", "k l", "m"]]
    tokenizer = xlnet.Tokenizer(vocab_file)
    columns = [tokenizer.encode(column) for column in texts[:num_texts]]
    graph = GraphTokenizer(tokenizer)
    inputs = graph.pack([graph(tf.constant(column)) for column in texts[:num_texts]], length=29)
    for name, value in pack_columns(columns, 29).items():
        np.testing.assert_array_equal(inputs[name], value)
    if num_texts < 3:
        found = tokenizer(*texts[:num_texts], max_length=29, padding="max_length")
        np.testing.assert_array_equal(inputs["token_ids"], found["token_ids"])
    is_real = ~inputs["is_padding"].numpy()
    for encoder in encoders:
        wanted = encoder(inputs)["content"].numpy()[is_real]
        for left_out in (["is_padding"], ["segment_ids"], ["is_padding", "segment_ids"]):
            given = {name: x for name, x in inputs.items() if name not in left_out}
            content = encoder(given)["content"].numpy()
            np.testing.assert_allclose(content[is_real], wanted, atol=1e-5)


def test_rows_are_independent():
    model, inputs = classifier(), packed(5, 7, 11)
    logits = model(inputs)
    changed = {name: x.copy() for name, x in inputs.items()}
    changed["token_ids"][1, -3] = 9 + (changed["token_ids"][1, -3] + 1 - 9) % (VOCAB - 9)
    different = np.abs(model(changed) - logits).max(axis=1) > 1e-6
    assert different.tolist() == [False, True, False]


def compiled(model, **settings):
    loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = tf_keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)  # Or `fit` would trace the step twice.
    model.compile(optimizer, loss, ["accuracy"], **settings)
    return model


def examples():
    """Features of texts whose class one token tells, and labels."""
    inputs, labels = packed(*[9] * 24), np.arange(24) % CLASSES
    inputs["token_ids"][:, -4] = 20 + labels
    return inputs, labels


@pytest.mark.slow
def test_it_learns_and_is_saved_whole(tmp_path):
    tf_keras.utils.set_random_seed(1)
    model = compiled(XLNetClassifier(tiny_encoder(mem_len=0, dropout=0.1, num_layers=1), CLASSES))
    inputs, labels = examples()
    model.test_step(
        (inputs, tf.constant(labels))
    )  # So that there are metrics before the step is traced.
    before = model.evaluate(inputs, labels, verbose=0)[0]
    model.fit(inputs, labels, batch_size=8, epochs=20, verbose=0)
    loss, accuracy = model.evaluate(inputs, labels, verbose=0)
    assert loss < before / 2 and accuracy > 0.9
    expected = model.predict(inputs, verbose=0)
    model.save(f"{tmp_path}/model.keras")
    again = tf_keras.models.load_model(f"{tmp_path}/model.keras")
    np.testing.assert_allclose(again.predict(inputs, verbose=0), expected, atol=1e-6)
    again.run_eagerly = True
    again.fit(inputs, labels, verbose=0)
    model.save_weights(f"{tmp_path}/weights.h5")
    other = XLNetClassifier(tiny_encoder(1, mem_len=0, num_layers=1), CLASSES)
    other.load_weights(f"{tmp_path}/weights.h5")
    np.testing.assert_allclose(other(inputs), expected, atol=1e-6)
    model.save(f"{tmp_path}/saved")
    exported = tf.saved_model.load(f"{tmp_path}/saved")
    tensors = tf.nest.map_structure(tf.constant, inputs)
    np.testing.assert_allclose(exported(tensors, training=False), expected, atol=1e-5)


class Turned(XLNetClassifier):
    """Control flow over tensors, as users write it."""

    def call(self, inputs, training=None):
        logits = super().call(inputs, training=training)
        if tf.reduce_sum(logits) < 0:
            logits = -logits
        for _ in tf.range(3):
            logits += 1.0
        return logits


def test_control_flow_of_a_subclass_is_converted_to_a_graph():
    """AutoGraph leaves our own functions as they are, and none of those built on them."""
    model, inputs = Turned(tiny_encoder(num_layers=1, mem_len=0), CLASSES), packed(5, 11)
    found = []
    for bias in (-30.0, 30.0):
        model.logits.bias.assign([bias] * CLASSES)
        predicted = model.predict(inputs, verbose=0)
        np.testing.assert_allclose(predicted, model(inputs), atol=1e-5)
        logits = XLNetClassifier.call(model, inputs)
        found.append(float(tf.reduce_sum(logits)))
        np.testing.assert_allclose(predicted, logits * np.sign(found[-1]) + 3, atol=1e-5)
    assert found[0] < 0 < found[1]
