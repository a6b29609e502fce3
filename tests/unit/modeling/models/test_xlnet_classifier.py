"""The plain Keras classifier: its logits, training, saving, and what it does with padding."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.tokenization.graph.packing import pack_columns
from tests.helpers.tiny import VOCAB, randomize, tiny_config, tiny_encoder

CLASSES = 3
LOSSES = tf_keras.losses
METRICS = tf_keras.metrics
LENGTHS = 5, 0, 11, 15


def packed(lengths, num_texts=1, length=17):
    """Rows of texts whose lengths are cut from `lengths`, padded on the left."""
    rng = np.random.default_rng(0)
    columns = [
        [rng.integers(9, VOCAB, n // num_texts).tolist() for n in lengths] for _ in range(num_texts)
    ]
    return pack_columns(columns, length)


def test_logits_are_those_of_the_task_model():
    config = tiny_config(name="classification", labels="[a, b, c]", mem_len=0)
    task = XLNetTaskModel(config)
    randomize(task.encoder.variables + task.head.variables, 1)
    inputs = packed(LENGTHS)
    expected = task({name: x[:, None] for name, x in inputs.items()})["logits"]
    for number in (CLASSES, None):
        model = XLNetClassifier(task.encoder, number)
        model.head.set_weights(task.head.get_weights())
        logits = model(inputs)
        assert logits.shape == (4, CLASSES) and logits.dtype == tf.float32
        np.testing.assert_allclose(logits, expected, atol=1e-6)
        of_any_length = tf.function(model, input_signature=[tf.TensorSpec([None, None], tf.int32)])
        np.testing.assert_allclose(of_any_length(inputs["token_ids"]), expected, atol=1e-5)


@pytest.mark.parametrize(("memory", "num_texts"), [(7, 1), (0, 2), (0, 3), (0, 5)])
def test_what_is_left_out_follows_from_the_token_ids(memory, num_texts):
    """With each subset of the features, and of a row alone."""
    model = XLNetClassifier(tiny_encoder(mem_len=memory), CLASSES)
    randomize(model.variables)
    inputs = packed(LENGTHS, num_texts, length=23)
    wanted, token_ids = model(inputs), inputs["token_ids"]
    for kept in ([], ["segment_ids"], ["is_padding"]):
        given = {name: inputs[name] for name in ["token_ids", *kept]}
        np.testing.assert_allclose(model(given), wanted, atol=1e-5)
    for row, start in enumerate(inputs["is_padding"].sum(axis=1)):
        alone = model(token_ids[row : row + 1, start:])
        np.testing.assert_allclose(alone[0], wanted[row], atol=1e-5)
    with pytest.raises(DataError, match="expected the encoder input 'token_ids', got only"):
        model({"is_padding": inputs["is_padding"]})


@pytest.mark.slow
def test_it_learns_and_is_saved_whole(tmp_path):
    """One token of each text tells its class."""
    tf_keras.utils.set_random_seed(1)
    model = XLNetClassifier(tiny_encoder(mem_len=0, dropout=0.1, num_layers=1), CLASSES)
    inputs, labels = packed([9] * 24), np.arange(24) % CLASSES
    inputs["token_ids"][:, -4] = 20 + labels
    optimizer = tf_keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)  # Or `fit` would trace the step twice.
    model.compile(optimizer, tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    losses = model.fit(inputs, labels, batch_size=8, epochs=20, verbose=0).history["loss"]
    assert losses[-1] < 0.2 * losses[0]
    expected = model(inputs)
    for name in ("model.keras", "saved"):
        model.save(f"{tmp_path}/{name}")
    again = tf_keras.models.load_model(f"{tmp_path}/model.keras")
    np.testing.assert_allclose(again(inputs), expected, atol=1e-6)
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
    model, inputs = Turned(tiny_encoder(num_layers=1, mem_len=0), CLASSES), packed([5, 11])
    for bias in (-30.0, 30.0):
        model.head.logits.bias.assign([bias] * CLASSES)
        wanted = XLNetClassifier.call(model, inputs) * np.sign(bias) + 3
        np.testing.assert_allclose(model.predict(inputs, verbose=0), wanted, atol=1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        LOSSES.BinaryCrossentropy(),
        LOSSES.categorical_crossentropy,
        [LOSSES.CategoricalCrossentropy()],
        functools.partial(LOSSES.binary_crossentropy, from_logits=False),
        "kl_divergence",
        LOSSES.KLDivergence(),
    ],
)
def test_a_loss_of_probabilities_is_refused(loss):
    model = XLNetClassifier(tiny_encoder(), num_classes=2)
    with pytest.raises(ConfigError, match="loss: expected one of logits, with from_logits=True"):
        model.compile("adam", loss)


@pytest.mark.parametrize("num_classes", [1, CLASSES])
def test_accuracy_of_binary_probabilities_is_refused(num_classes):
    model = XLNetClassifier(tiny_encoder(), num_classes)
    loss = LOSSES.BinaryCrossentropy(from_logits=True)
    for metrics in (["accuracy"], "acc", [["binary_accuracy", "mse"]]):
        for arguments in ({"metrics": metrics}, {"weighted_metrics": metrics}):
            with pytest.raises(ConfigError, match=r"BinaryAccuracy\(threshold=0.0\), as"):
                model.compile("adam", loss, **arguments)
    model.compile("adam", loss, [METRICS.BinaryAccuracy(threshold=0.0), "mse"])


@pytest.mark.parametrize(
    "metric",
    [
        "crossentropy",
        "sparse_categorical_crossentropy",
        METRICS.BinaryAccuracy(),
        METRICS.binary_accuracy,
        METRICS.CategoricalCrossentropy(),
        LOSSES.binary_crossentropy,
        *("AUC", "Precision", METRICS.KLDivergence()),
        *(METRICS.Recall(), METRICS.TruePositives(), METRICS.Precision(thresholds=[0, 0.7])),
        *(METRICS.F1Score(threshold=0.5), METRICS.BinaryIoU(), METRICS.SensitivityAtSpecificity(1)),
    ],
)
def test_a_metric_of_probabilities_is_refused(metric):
    model, loss = XLNetClassifier(tiny_encoder(), CLASSES), "mse"
    with pytest.raises(ConfigError, match="metrics: expected metrics of logits"):
        model.compile("adam", loss, [["mae", metric]])
    of_logits = METRICS.CategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, ["mae", of_logits, METRICS.Mean(), lambda y, x: x])
    of_logits = [METRICS.AUC(from_logits=True), METRICS.Recall(0.0), METRICS.Precision(top_k=1)]
    model.compile("adam", loss, ["accuracy", *of_logits, METRICS.F1Score(), "cosine_similarity"])
    model.compile("adam", loss, ["no metric"])  # Keras says so in the first step.


def test_any_other_loss_is_taken():
    model = XLNetClassifier(tiny_encoder(), num_classes=2)
    of_logits = functools.partial(LOSSES.binary_crossentropy, from_logits=True)
    for loss in (None, "mse", LOSSES.Hinge(), of_logits, lambda y, x: x, [LOSSES.Huber()]):
        model.compile("adam", loss, ["accuracy"], weighted_metrics=["accuracy"])
