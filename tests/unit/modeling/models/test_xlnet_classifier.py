"""The plain Keras classifier: its logits, training, saving, and what it does with padding."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from official.xlnet.tasks.preprocessor import Preprocessor
from official.xlnet.tokenization.graph.packing import pack_columns
from official.xlnet.tokenization.tokenizer import Tokenizer
from tests.helpers.corpora import vocabulary_dir
from tests.helpers.tiny import VOCAB, randomize, tiny_config, tiny_encoder

CLASSES = 3
LOSSES = keras.losses
METRICS = keras.metrics
LENGTHS = 5, 0, 11, 15


def packed(lengths, num_texts=1, length=17):
    """Rows of texts whose lengths are cut from `lengths`, padded on the left."""
    rng = np.random.default_rng(0)
    columns = [
        [rng.integers(9, VOCAB, n // num_texts).tolist() for n in lengths] for _ in range(num_texts)
    ]
    return pack_columns(columns, length)


def test_logits_are_those_of_the_task_model():
    config = tiny_config(name="classification", labels="[a, b, c]", mem_len=0, num_layers=1)
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


class Turned(XLNetClassifier):
    """Control flow over tensors, as users write it."""

    @(tf.function if IS_KERAS_3 else lambda call: call)  # Keras 3 itself converts nothing.
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


BINARY = LOSSES.BinaryCrossentropy(from_logits=True)
OF_PROBABILITIES = functools.partial(LOSSES.binary_crossentropy, from_logits=False)
OF_LOGITS = functools.partial(OF_PROBABILITIES, from_logits=True)
LOSSES_OF_PROBABILITIES = [
    *("sparse_categorical_crossentropy", "kl_divergence", LOSSES.KLDivergence()),
    *(LOSSES.BinaryCrossentropy(), [LOSSES.CategoricalCrossentropy()]),
    *(LOSSES.categorical_crossentropy, OF_PROBABILITIES),
]
METRICS_OF_PROBABILITIES = [
    *(
        "crossentropy",
        "ce",
        "sparse_categorical_crossentropy",
        "AUC",
        "Precision",
        METRICS.Recall(),
    ),
    *(METRICS.BinaryAccuracy(), METRICS.binary_accuracy, METRICS.CategoricalCrossentropy()),
    *(LOSSES.binary_crossentropy, METRICS.KLDivergence(), METRICS.TruePositives()),
    *(METRICS.Precision(thresholds=[0, 0.7]), METRICS.F1Score(threshold=0.5)),
    *(METRICS.BinaryIoU(), METRICS.SensitivityAtSpecificity(1)),
]
REFUSED = [
    *(({"loss": loss}, "loss: expected one of logits, with") for loss in LOSSES_OF_PROBABILITIES),
    *(
        ({"loss": "mse", "metrics": [["mae", metric]]}, "metrics: expected metrics of logits")
        for metric in METRICS_OF_PROBABILITIES
    ),
    *(
        ({"loss": BINARY, kind: metrics}, r"BinaryAccuracy\(threshold=0.0\), as")
        for kind in ("metrics", "weighted_metrics")
        for metrics in (["accuracy"], "acc", [["binary_accuracy", "mse"]])
    ),
]
METRICS_OF_LOGITS = [
    *("accuracy", "mae", "cosine_similarity", METRICS.Mean(), lambda y, x: x, METRICS.F1Score()),
    *(METRICS.CategoricalCrossentropy(from_logits=True), METRICS.AUC(from_logits=True)),
    *(METRICS.Recall(0.0), METRICS.Precision(top_k=1)),
    *([] if IS_KERAS_3 else ["no metric"]),  # Keras 2 says so in the first step.
]
TAKEN = [
    *({"loss": x} for x in (None, LOSSES.Hinge(), OF_LOGITS, lambda y, x: x, [LOSSES.Huber()])),
    {"loss": BINARY, "metrics": [METRICS.BinaryAccuracy(threshold=0.0), "mse"]},
    {"loss": "mse", "metrics": METRICS_OF_LOGITS, "weighted_metrics": ["accuracy"]},
]


@functools.cache
def classifier(num_classes):
    return XLNetClassifier(tiny_encoder(num_layers=1), num_classes)


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=range(len(REFUSED)))
def test_losses_and_metrics_of_probabilities_are_refused(arguments, message):
    for number in (1, CLASSES):
        with pytest.raises(ConfigError, match=message):
            classifier(number).compile("adam", **arguments)


@pytest.mark.parametrize("arguments", TAKEN, ids=range(len(TAKEN)))
def test_losses_and_metrics_of_logits_are_taken(arguments):
    classifier(CLASSES).compile("adam", **arguments)


def test_ragged_ids_are_padded_on_the_left():
    """Alone, with segments, and in `fit`, whose batches have several lengths."""
    model, inputs = classifier(CLASSES), packed(LENGTHS, num_texts=2)
    is_real = ~inputs["is_padding"]
    ragged = {
        name: tf.RaggedTensor.from_row_lengths(inputs[name][is_real], is_real.sum(axis=1))
        for name in ("token_ids", "segment_ids")
    }
    wanted = model(inputs)
    for given in (ragged, ragged["token_ids"]):
        np.testing.assert_allclose(model(given), wanted, atol=1e-5)
        np.testing.assert_allclose(model.predict(given, 3, verbose=0), wanted, atol=1e-5)


def test_ids_out_of_range_are_refused_where_a_model_is_called_with_them():
    """XLA would take other ids in their place, and a GPU zeros."""
    model, ids, labels = classifier(1), packed([7, 9])["token_ids"], np.ones(2)
    model.compile("sgd", "mse", jit_compile=True)
    message = f"token_ids: expected ids from 0 to {VOCAB - 1}, the vocabulary of the model, got"
    for wrong in (ids + VOCAB, ids - 9):
        data = tf.data.Dataset.from_tensors(({"token_ids": wrong}, labels))
        for call in (
            lambda: model.predict(wrong, verbose=0),  # noqa: B023
            lambda: model.fit({"token_ids": wrong}, labels),  # noqa: B023
            lambda: model.fit(ids, labels, validation_data=(wrong, labels), verbose=0),  # noqa: B023
            lambda: model.evaluate(tf.RaggedTensor.from_tensor(wrong), labels),  # noqa: B023
            lambda: model.train_on_batch(tf.constant(wrong), labels),  # noqa: B023
            lambda: model.test_on_batch(wrong, labels),  # noqa: B023
            lambda: model.predict(data.map(lambda x, _: x), verbose=0),  # noqa: B023
        ):
            with pytest.raises((DataError, tf.errors.InvalidArgumentError), match=message):
                call()


@pytest.mark.slow
def test_texts_of_a_model_that_is_compiled_with_xla_and_padding_to_the_longest():
    tokenizer = Tokenizer(f"{vocabulary_dir()}/spiece.model")
    texts = np.array(["the water may find", "first"])
    task = tiny_config(max_length=23).task
    encoder = tiny_encoder(vocab_size=211, mem_len=0, num_layers=1)
    longest = Preprocessor(tokenizer, task, "longest")
    model = XLNetClassifier(encoder, 2, Preprocessor(tokenizer, task))
    model.compile("sgd", LOSSES.SparseCategoricalCrossentropy(from_logits=True), jit_compile=True)
    strings = keras.Input([], dtype=tf.string)
    functional = keras.Model(strings, encoder(longest(strings))["content"])
    functional.compile("sgd", "mse", jit_compile=True)
    message = r"jit_compile: expected token ids, .*`map` of a data set: .*classifier.preprocessor"
    for call in (
        lambda: model.fit(texts, np.ones(2)),
        lambda: functional.predict(tf.constant(texts)),
    ):
        with pytest.raises(ConfigError, match=message):
            call()

    short = longest(texts)
    (num_padding,) = set(np.argmin(short["is_padding"], axis=1)) - {0}
    assert short["token_ids"].shape == [2, 6] and num_padding == 3
    again = Preprocessor.from_config(longest.get_config())(texts)
    for name, values in model.preprocessor(texts).items():
        np.testing.assert_array_equal(short[name], values[:, -6:])
        np.testing.assert_array_equal(again[name], short[name])
    wanted = model(model.preprocessor(texts))
    np.testing.assert_allclose(model(short), wanted, atol=1e-5)
    windows = tiny_config(max_length=9, max_windows=3, window_stride=3, long_texts="windows").task
    assert Preprocessor(tokenizer, windows, "longest")(texts)["is_padding"].shape == [2, 3, 6]
