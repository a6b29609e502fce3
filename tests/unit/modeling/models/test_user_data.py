"""Inputs and labels as users have them: what Keras takes instead, or one sentence."""

import functools
import multiprocessing

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError
from official.xlnet.modeling.models.checked_data import DataChecks
from official.xlnet.modeling.models.checked_labels import rule_of_loss
from official.xlnet.modeling.models.user_arrays import as_arrays
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.ops.keras import IS_KERAS_3, keras
from tests.helpers.tiny import VOCAB, tiny_config, tiny_encoder

CLASSES, ROWS, LENGTH = 3, 5, 7
LOSSES = keras.losses
TEXTS = ["the water", "é", "", "first"]
STRINGS = np.dtypes.StringDType
TEXT_FORMS = {
    "list": list,
    "bytes": lambda texts: [text.encode() for text in texts],
    "array": np.array,
    "objects": lambda texts: np.array(texts, object),
    "StringDType": lambda texts: np.array(texts, STRINGS()),
    "pandas": pd.Series,
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "pandas category": lambda texts: pd.Series(texts, dtype="category"),
}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_texts_of_every_form_are_a_tensor(form):
    data = TEXT_FORMS[form](TEXTS)
    expected = [text.encode() for text in TEXTS]
    for tensor in (
        as_arrays(data, "inputs"),
        as_arrays((data, data), "inputs")[1],
        as_arrays({"text": data}, "inputs")["text"],
    ):
        assert tensor.dtype == tf.string and tensor.numpy().tolist() == expected


def test_tables_are_columns_by_name_and_no_rows_are_no_texts():
    frame = pd.DataFrame({"first": TEXTS, "second": TEXTS[::-1]})
    columns = as_arrays(frame, "inputs")
    assert [text.decode() for text in columns["second"].numpy()] == TEXTS[::-1]
    assert as_arrays([], "inputs").shape == [0] == as_arrays(pd.Series([], dtype="O"), "x").shape


@pytest.mark.parametrize(
    ("data", "row", "expected"),
    [
        (["a", None, "b"], 2, "a text"),
        (["a", float("nan")], 2, "a text"),
        ([3, "a"], 1, "a text"),
        (pd.Series([pd.NA, "a"], dtype="string"), 1, "a text"),
        (pd.Series(["a", "b", None]), 3, "a text"),
        (np.array(["a", None], STRINGS(na_object=None)), 2, "a text"),
        ([0, None, 1], 2, "a number"),
        (np.array([0, 1, pd.NA], object), 3, "a number"),
    ],
)
def test_a_missing_value_names_its_row(data, row, expected):
    with pytest.raises(
        DataError, match=f"inputs: expected {expected} in each row, got .* row {row}"
    ):
        as_arrays(data, "inputs")


def test_rows_of_token_ids_are_an_array_or_ragged():
    rng = np.random.default_rng(0)
    for lengths in ([4, 4, 4], [4, 0, 9], [0, 2]):
        rows = [rng.integers(9, VOCAB, length).tolist() for length in lengths]
        objects = np.empty(len(rows), object)
        objects[:] = rows
        arrays = [np.array(row, np.int64) for row in rows]
        for data in (rows, arrays, tuple(rows) and list(map(tuple, rows)), pd.Series(objects)):
            found = as_arrays(data, "inputs")
            found = found.to_list() if isinstance(found, tf.RaggedTensor) else found.tolist()
            assert found == rows
    assert as_arrays([[[1, 2]], [[3, 4]]], "inputs").shape == (2, 1, 2)
    assert as_arrays([[0, 1], [1, 0]], "labels").tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a text", "expected a list of texts, got one text, 'a text'"),
        (("a", "b"), "got a tuple of texts"),
        ([["a", "b"], ["c", "d"]], "a tuple of their lists or a dictionary by column, got a list"),
        (
            [np.ones([2, 3]), np.ones([2, 3])],
            r"array \[rows, tokens\], or a dictionary .* 2 arrays",
        ),
        ([[1, 2], 3], "expected lists in all rows, got 3"),
    ],
)
def test_what_is_meant_otherwise_is_told(data, message):
    with pytest.raises((ConfigError, DataError), match=f"inputs: .*{message}"):
        as_arrays(data, "inputs")


# {loss: from a label to whether the loss is of it}
KINDS = {
    LOSSES.SparseCategoricalCrossentropy(from_logits=True): lambda x: x in range(CLASSES),
    LOSSES.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1): (
        lambda x: x in range(-1, CLASSES)
    ),
    LOSSES.sparse_categorical_crossentropy: lambda x: x in range(CLASSES),
    functools.partial(LOSSES.binary_crossentropy, from_logits=True): lambda x: 0 <= x <= 1,
    LOSSES.BinaryFocalCrossentropy(from_logits=True): lambda x: 0 <= x <= 1,
    LOSSES.CategoricalCrossentropy(from_logits=True): lambda x: 0 <= x <= 1,
    LOSSES.MeanSquaredError(): np.isfinite,
    LOSSES.get("mse"): np.isfinite,
    LOSSES.Hinge(): np.isfinite,
    (lambda y, x: x): lambda x: True,
    type("Own", (LOSSES.MeanSquaredError,), {"__module__": "mine"})(): lambda x: True,
}


@pytest.mark.parametrize(
    "index", [0, *(pytest.param(index, marks=pytest.mark.slow) for index in range(1, len(KINDS)))]
)
def test_labels_are_those_of_the_loss(index):
    """Each label, and some of a data set, against the definition."""
    loss, is_label = list(KINDS.items())[index]
    num_in_row = CLASSES if "parse" not in repr(loss) + type(loss).__name__ else 1
    rule = rule_of_loss(loss, num_in_row if num_in_row > 1 else CLASSES, ())
    checks = DataChecks(VOCAB, rule)
    for label in (0, 1, 2, 3, -1, 7, 0.5, float("nan"), float("inf"), -2.0):
        labels = np.zeros([ROWS, num_in_row])
        labels[3, -1] = label
        ids = np.full([ROWS, LENGTH], 9)
        data = [tf.data.Dataset.from_tensors((ids, labels))] if label in (2, -1) else []
        if is_label(label):
            np.testing.assert_array_equal(checks.labels(labels), labels)
            for x in data:
                next(iter(checks.source(x)))
        else:
            message = f"labels: expected .* in each row.*got {label:g} in row 4"
            with pytest.raises(DataError, match=message):
                checks.labels(labels.tolist())
            for x in data:
                with pytest.raises(tf.errors.InvalidArgumentError, match="labels: expected"):
                    next(iter(checks.source(x)))


@functools.cache
def classifier():
    model = XLNetClassifier(tiny_encoder(num_layers=1, mem_len=0), CLASSES)
    loss = LOSSES.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, run_eagerly=True)
    return model


IDS = np.random.default_rng(0).integers(9, VOCAB, (ROWS, LENGTH))


class Batches(keras.utils.Sequence):
    """One batch, as a user's own class has it."""

    def __init__(self, *batch):
        if IS_KERAS_3:
            super().__init__()
        self.batch, self.num_ends = batch, 0

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self.batch

    def on_epoch_end(self):
        self.num_ends += 1


@pytest.mark.parametrize("wrong", ["-1", "missing", "text", "fraction", "one-hot"])
def test_every_door_checks_labels(wrong):
    labels = {
        "-1": ([0, 1, 2, -1, 1], "got -1 in row 4, which often stands for a missing label"),
        "missing": (pd.Series([0, 1, 2, pd.NA, 1], dtype="Int64"), "got nan|got <NA> in row 4"),
        "text": (["b", "a", "b", "b", "a"], "got texts such as 'b': .*index"),
        "fraction": ([0, 1, 2, 0.5, 1], "got 0.5 in row 4"),
        "one-hot": (np.eye(CLASSES)[[0, 1, 2, 2, 1]], "one-hot"),
    }
    y, message = labels[wrong]
    model, right = classifier(), [0, 1, 2, 2, 1]
    calls = [
        lambda: model.fit(IDS, y, verbose=0),
        lambda: model.fit(IDS, right, validation_data=(IDS, y), verbose=0),
        lambda: model.evaluate(IDS, y, verbose=0),
        lambda: model.train_on_batch(IDS, y),
        lambda: model.test_on_batch(IDS, y),
        lambda: model.fit((batch for batch in [(IDS, y)]), verbose=0),
        lambda: model.evaluate(Batches(IDS, y), verbose=0),
    ]
    for call in calls:
        with pytest.raises(DataError, match=f"labels: expected .*({message})"):
            call()


def checked_batch(rows, labels, weights=None):
    """A batch of a `PyDataset`, as `fit` reads it."""
    rule = rule_of_loss(LOSSES.SparseCategoricalCrossentropy(from_logits=True), CLASSES, ())
    batch = (rows, labels) if weights is None else (rows, labels, weights)
    return DataChecks(VOCAB, rule).batch(batch)


def test_worker_processes_of_a_sequence_check_batches_without_tensorflow():
    tf.constant(0)  # A process that is forked now cannot use TensorFlow.
    rows, labels, weights = IDS.tolist(), IDS[:, 0] % CLASSES, np.ones(ROWS, np.float32)
    wrong = {
        "labels: expected .*got -1 in row 1": (rows, labels - 1 - labels[0]),
        "token_ids: expected ids from 0": ((IDS + VOCAB).tolist(), labels),
        "inputs: expected rows of one length, .*<pad>, 5": ([rows[0], *rows[1:-1], [9]], labels),
    }
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for batch in ((rows, labels), (rows, labels, weights)):
            found = pool.apply_async(checked_batch, batch).get(60)
            for values, expected in zip(found, batch, strict=True):
                np.testing.assert_array_equal(values, expected)
        for message, batch in wrong.items():
            with pytest.raises(DataError, match=message):
                pool.apply_async(checked_batch, batch).get(60)


def test_lists_of_rows_of_several_lengths_in_a_call():
    rows = [row[:length].tolist() for row, length in zip(IDS, [3, 7, 2, 1, 5], strict=True)]
    model = classifier()
    expected = np.concatenate([model(np.array([row])) for row in rows])
    np.testing.assert_allclose(model(rows), expected, atol=1e-5)
    with pytest.raises(DataError, match=r"token_ids: expected a dense tensor, .*to_tensor"):
        model.encoder(rows)


@pytest.mark.parametrize("shape", [[ROWS], [ROWS, 1], [ROWS, CLASSES]])
def test_a_label_of_a_row_without_weight_is_any_number(shape):
    rng = np.random.default_rng(3)
    labels, weights = rng.integers(0, 2, shape).astype(np.float32), np.ones(ROWS, np.float32)
    labels[2], weights[2] = -1, 0
    loss = LOSSES.BinaryCrossentropy(from_logits=True)
    checks = DataChecks(VOCAB, rule_of_loss(loss, shape[1] if len(shape) > 1 else 1, ()))
    batches = tf.data.Dataset.from_tensors((np.ones([ROWS, LENGTH], np.int32), labels, weights))
    np.testing.assert_array_equal(checks.labels(labels, weights), labels)
    [(_, found, _)] = checks.source(batches)
    np.testing.assert_array_equal(found, labels)
    for wrong_labels, wrong_weights in (
        (labels, weights + 1),
        (labels, None),
        (np.where(labels < 0, np.nan, labels), weights),
    ):
        with pytest.raises(DataError, match=r"labels: expected .* in row 3"):
            checks.labels(wrong_labels, wrong_weights)
    wrong = batches.map(lambda ids, y, w: (ids, y, w + 1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="labels: expected"):
        list(checks.source(wrong))


def test_sources_of_lists_are_read_as_arrays():
    model, labels = classifier(), [0, 1, 2, 2, 1]
    expected = model.predict(IDS, verbose=0)
    loss = model.evaluate(IDS, labels, verbose=0)
    rows = IDS.tolist()
    for x in (rows, list(IDS), {"token_ids": rows}, iter([(rows,)]), Batches(rows)):
        np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-6)
    sequence = Batches(rows, labels, [1, 1, 1, 1, 1])
    for data in ((rows, labels), (iter([(rows, labels)]),), (sequence,)):
        assert model.evaluate(*data, verbose=0) == pytest.approx(loss, abs=1e-6)
    weights = [2, 0, 0, 0, 0]
    first = model.evaluate(IDS[:1], labels[:1], verbose=0)
    weighted = model.evaluate(rows, labels, sample_weight=weights, verbose=0)
    assert weighted == pytest.approx(first * 2 / ROWS, abs=1e-6)
    model.fit(sequence, verbose=0)
    assert sequence.num_ends > 0


def test_no_rows():
    model = classifier()
    for x in ([], IDS[:0], {"token_ids": IDS[:0]}, np.zeros([0])):
        outputs = model.predict(x, verbose=0)
        assert outputs.shape == (0, CLASSES) and outputs.dtype == np.float32
        with pytest.raises(DataError, match="inputs: expected at least one row, got none"):
            model.fit(x, [])


def test_one_row_without_an_axis_is_told():
    data = tf.data.Dataset.from_tensor_slices(IDS)
    for x in (IDS[0].tolist(), IDS[0], data):
        with pytest.raises(DataError, match=r"token_ids: expected the shape \[rows, tokens\], got"):
            classifier().predict(x, verbose=0)


@pytest.mark.parametrize("labels", [[0, 1, -1, 2, 1], ["a", "b", "c", "a", "a"], [0, 3, 1, 1, 1]])
def test_labels_of_a_task_are_checked_among_its_features_or_beside_them(labels):
    config = tiny_config(name="classification", labels="[a, b, c]", mem_len=0, num_layers=1)
    model = XLNetTaskModel(config)
    model.compile("sgd", run_eagerly=True)
    for data in (({"token_ids": IDS, "label": labels},), (IDS, labels), (IDS, {"label": labels})):
        with pytest.raises(
            DataError, match=r"labels: expected the number of a class .* from 0 to 2"
        ):
            model.fit(*data)
