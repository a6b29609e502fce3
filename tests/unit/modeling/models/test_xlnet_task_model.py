"""The model of a task: its step, buckets, long texts, and the auxiliary language model."""

import numpy as np
import pytest
import tensorflow as tf

from official.xlnet.modeling.models import xlnet_task_model
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.modeling.ops.keras import keras
from official.xlnet.modeling.ops.shapes import as_vector
from official.xlnet.tokenization.special_tokens import CLS_ID, SEP_ID
from official.xlnet.training.optimization import create_optimizer
from tests.helpers.compare import assert_all_close, assert_all_differ, assert_all_equal, values
from tests.helpers.compiled import make_model
from tests.helpers.served_models import random_task
from tests.helpers.task_corpora import task_config
from tests.helpers.tiny import random_windows, randomize

U, C = 4, 3
WEIGHT = np.array([1, 2, 0.5, 0], np.float32)
FEATURES = "token_ids", "segment_ids", "is_padding"


def batch_of(sequences, tokens, seed=0):
    """Texts A | SEP | B | SEP | CLS, padded on the left, in `sequences` parts of each unit."""
    rng = np.random.default_rng(seed)
    shape = U, sequences, tokens
    token_ids = rng.integers(9, 211, shape).astype(np.int32)
    token_ids[..., -1], token_ids[..., [6, -2]] = CLS_ID, SEP_ID
    segments = np.repeat([0, 1, 2], [7, tokens - 8, 1])
    return {
        "token_ids": token_ids,
        "segment_ids": np.broadcast_to(segments, shape).astype(np.int32),
        "is_padding": np.arange(tokens) < rng.integers(0, 5, (U, sequences, 1)),
        "label": rng.integers(0, C, U).astype(np.int32),
        "weight": WEIGHT,
    }


def model_of(kind="permutation", training=(), **task):
    config = task_config(name="classification", labels=("a", "b", "c"), batch_size=U, **task)
    config.objective.kind = kind
    vars(config.training).update(training)
    model = XLNetTaskModel(config)
    randomize(model.variables, seed=4)
    model.reset_metrics()  # Which are variables, too.
    optimizer = create_optimizer(config.training, config.model.num_layers)
    optimizer.build(model.trainable_variables)  # Or `fit` would trace the step twice.
    model.compile(optimizer)
    return model


def weighted_loss(model, batch):
    log_p = tf.nn.log_softmax(model(batch)["logits"]).numpy()
    return -np.sum(WEIGHT * log_p[np.arange(U), batch["label"]]) / WEIGHT.sum()


def test_the_loss_is_the_weighted_mean_and_a_step_changes_what_is_tuned():
    """Also in slices; a batch without labels changes nothing."""
    batch, results = batch_of(1, 23), []
    for slices in ({}, {"accumulate_steps": 2}, {"parallel_slices": 2}):
        model = model_of()
        vars(model.config.training).update(slices)
        wanted = weighted_loss(model, batch)
        before, mask = values(model.trainable_variables), model.encoder.mask_embedding.numpy()
        metrics = model.train_step(batch)
        assert float(metrics["loss"]) == pytest.approx(wanted, rel=1e-4)
        np.testing.assert_array_equal(model.encoder.mask_embedding, mask)
        assert_all_differ(before, model.trainable_variables)
        model.run_eagerly = "accumulate_steps" not in slices
        # Of four rows in batches of three, slices have 1, 2, 0 and 1 rows.
        model.fit(tf.data.Dataset.from_tensor_slices(batch).batch(3), verbose=0)
        results.append(values(model.variables))
    for sliced in results[1:]:
        assert_all_close(sliced, results[0], atol=2e-4)
    model.reset_metrics()
    metrics, none = model.train_step(batch), {**batch, "weight": np.zeros(U, np.float32)}
    before, again = values(model.variables), model.train_step(none)
    assert again == metrics and again["targets"] == WEIGHT.sum()
    assert_all_equal(model.variables, before)
    assert int(model.optimizer.iterations) == 5
    model.run_eagerly = True
    history = model.fit(tf.data.Dataset.from_tensors(none), verbose=0).history
    assert np.isnan(history["loss"]) and history["targets"] == [0]


def test_a_step_says_that_a_gradient_is_not_finite(monkeypatch):
    """Such a step changes no weight, though its loss is finite."""
    model, batch = model_of(), batch_of(1, 23)
    summed = xlnet_task_model.accumulated

    def spoiled(*arguments):
        def with_bad_value(task, seed):
            gradients, loss_sum, memory = summed(*arguments)(task, seed)
            gradients[5] += np.inf
            return gradients, loss_sum, memory

        return with_bad_value

    monkeypatch.setattr(xlnet_task_model, "accumulated", spoiled)
    before = values(model.trainable_variables)
    metrics = model.train_step(batch)
    assert np.isfinite(metrics["loss"]) and not np.isfinite(metrics["gradient_norm"])
    assert_all_equal(values(model.trainable_variables), before)


def test_cutting_shared_padding_changes_nothing():
    batch, results = batch_of(1, 24), []
    batch["is_padding"] = np.arange(24) < np.array([15, 17, 19, 16])[:, None, None]
    for num_buckets, lengths in ((1, ()), (2, ()), (1, (17, 20, 24)), (2, (8, 12))):
        model = model_of(num_buckets=num_buckets, max_length=24)
        model.training_lengths = lengths  # Those that end in another length are not of the batch.
        model.run_eagerly = num_buckets == 1
        model.fit(tf.data.Dataset.from_tensors(batch), verbose=0)
        results.append(values(model.variables))
    for result in results[1:]:
        assert_all_close(result, results[0], atol=2e-4)


def test_a_task_may_freeze_its_encoder():
    model = model_of(freeze_encoder=True)
    assert [*map(id, model.trainable_variables)] == [*map(id, model.head.trainable_variables)]


@pytest.mark.parametrize(
    ("optimizer", "frozen"),
    [
        ("adamw", {"freeze_network": True}),
        *(
            pytest.param(optimizer, {frozen: True}, marks=pytest.mark.slow)
            for optimizer, frozen in (
                ("lamb", "freeze_network"),
                ("muon", "freeze_network"),
                ("adamw", "freeze_embeddings"),
            )
        ),
        pytest.param("lamb", {"freeze_layers": 1}, marks=pytest.mark.slow),
        ("muon", {"freeze_embeddings": True, "freeze_layers": 1}),
    ],
    ids=str,
)
def test_what_is_frozen_stays_as_it_is_and_has_no_moments_or_dropout(optimizer, frozen):
    """In fine-tuning and in pre-training, by the keys of both."""
    settings = {**frozen, "optimizer": optimizer}
    pretrainer, ids = make_model(**settings, dropout=0.5), tf.constant([[17, 42, 9], [11, 25, 33]])
    for model, batch in (
        (model_of(training=settings), batch_of(1, 23)),
        (pretrainer, random_windows(1, batch=4)),
    ):
        layers = [model.encoder.word_embedding] * ("freeze_embeddings" in frozen)
        layers += model.encoder.blocks[: frozen.get("freeze_layers", 0)]
        layers = [model.encoder] if "freeze_network" in frozen else layers
        kept = [variable for layer in layers for variable in layer.variables]
        trained = model.trainable_variables
        assert not {*map(id, kept)} & {*map(id, trained)}
        # Fine-tuning does not read the embedding of targets.
        tuned = [x for x in trained if model is pretrainer or "mask_embedding" not in x.name]
        before, others = values(kept), values(tuned)
        model.train_step(batch)
        assert_all_equal(kept, before)
        assert_all_differ(others, tuned)
        sizes = [sum(map(np.size, values(x))) for x in (model.optimizer.variables, trained)]
        assert sizes[0] <= 2 * sizes[1] + 9
    outputs = [pretrainer(ids, training=training)["content"] for training in (True, False)]
    assert np.array_equal(*outputs) == ("freeze_network" in frozen)


def last(summaries, axis):
    return summaries[-1].numpy()


WITH_MEMORY = {"long_texts": "memory", "mem_len": 17, "max_length": 11}


@pytest.mark.parametrize(
    ("pool", "settings"),
    [
        (np.mean, {"long_texts": "windows", "pooling": "mean"}),
        (np.max, {"long_texts": "windows", "pooling": "max"}),
        (np.mean, {**WITH_MEMORY, "pooled_segments": "all", "summary": "last"}),
        (np.mean, {**WITH_MEMORY, "pooled_segments": "all", "summary": "mean"}),
        (last, {**WITH_MEMORY, "pooled_segments": "last"}),
    ],
    ids=["windows mean", "windows max", "segments last", "segments mean", "last segment"],
)
def test_long_texts_are_read_part_by_part(pool, settings):
    """By hand, for texts of three, two and one parts; memory holds the tokens before, no padding.

    The first part of a text has a gradient exactly where it is pooled.
    """
    model = model_of(max_windows=3, **settings)
    batch = batch_of(3, 11)
    is_window = settings["long_texts"] == "windows"
    # Windows are filled from the first one on, segments end with the last one.
    for unit, missing in ((1, 1), (2, 2)):
        batch["is_padding"][unit, slice(-missing, None) if is_window else slice(missing)] = True
    batch["token_ids"] %= 199
    batch["token_ids"][0, 0, 9] = 199
    embedding = model.encoder.word_embedding.embeddings
    with tf.GradientTape() as tape:
        logits = model(batch)["logits"]
    gradient = tf.convert_to_tensor(tape.gradient(logits, embedding)).numpy()
    assert np.any(gradient[199]) == (pool is not last)
    for u in range(U):
        summaries, recalled, seen = [], {}, 0
        for s in np.flatnonzero(~batch["is_padding"][u].all(axis=1)):
            inputs = {name: batch[name][u, s][None] for name in FEATURES}
            outputs = model.encoder({**inputs, **recalled})
            summaries.append(model.head.summary(outputs["content"], inputs["is_padding"])[0])
            seen += int((~inputs["is_padding"]).sum())
            if not is_window:
                recalled = {"memory": outputs["memory"], "memory_length": np.array([seen], "i4")}
        expected = pool(summaries, axis=0) @ model.head.logits.kernel.numpy()
        expected += model.head.logits.bias.numpy()
        np.testing.assert_allclose(logits[u], expected, rtol=1e-4, atol=1e-4)


def language_model_loss(model, batch, kind):
    """Mean -log p of each unit, from one encoder call for each prefix of each text."""
    embedding = model.encoder.word_embedding.embeddings.numpy()
    bias = model.language_model.lm_head.bias.numpy()
    losses = []
    for u in range(U):
        found = []
        for ids, segments, is_padding in zip(*(batch[name][u] for name in FEATURES), strict=True):
            start = int(is_padding.sum())
            for t in range(start + 1, len(ids)):
                if ids[t] < 9:
                    continue
                # The token itself is replaced, or left out: a target does not see itself.
                end = t + (kind == "permutation")
                inputs = {
                    "token_ids": np.append(ids[start:t], 77)[None, : end - start],
                    "segment_ids": segments[None, start:end],
                    "order": np.arange(end - start)[None],
                }
                if kind == "permutation":
                    inputs["target_positions"] = np.array([[t - start]], np.int32)
                outputs = model.encoder(inputs)
                vector = outputs["query" if kind == "permutation" else "content"].numpy()[0, -1]
                logits = (embedding @ vector + bias).astype(float)
                found.append(np.log(np.exp(logits).sum()) - logits[ids[t]])
        losses.append(np.mean(found))
    return np.array(losses)


@pytest.mark.parametrize("kind", ["permutation", "causal"])
def test_auxiliary_language_model_loss(kind):
    """By hand, for each of two windows."""
    model = model_of(kind, lm_weight=0.5, long_texts="windows", max_windows=2)
    batch = batch_of(2, 11)
    inputs = tf.nest.map_structure(tf.constant, batch)
    wanted = language_model_loss(model, batch, kind)
    np.testing.assert_allclose(model.language_model(model.encoder, inputs), wanted, rtol=2e-4)


@pytest.mark.parametrize("slices", [{}, {"accumulate_steps": 2}], ids=str)
def test_a_step_minimizes_the_sum_of_both_losses(slices):
    batch, model = batch_of(1, 11), model_of(lm_weight=0.5)
    vars(model.config.training).update(slices)
    losses = language_model_loss(model, batch, "permutation")
    wanted = weighted_loss(model, batch) + 0.5 * (losses * WEIGHT).sum() / WEIGHT.sum()
    tuned = [model.language_model.lm_head.bias, model.encoder.mask_embedding]
    before = values(tuned)
    np.testing.assert_allclose(model.train_step(batch)["loss"], wanted, rtol=1e-4)
    assert_all_differ(before, tuned)


@pytest.mark.parametrize("summary", ["last", "first", "mean"])
def test_padding_may_be_on_the_right_also_in_a_step(summary):
    """All buckets cut padding alone, wherever it is."""
    tokens, padding, model = 29, 13, model_of(num_buckets=3, summary=summary)
    left = batch_of(1, tokens)
    left["is_padding"] = np.broadcast_to(np.arange(tokens) < padding, (U, 1, tokens))
    right = {name: np.roll(left[name], -padding, axis=2) for name in FEATURES}
    losses = []
    for batch in (left, left | right):
        model.compile(keras.optimizers.SGD(0.0))
        losses += [model.train_step(batch)["loss"], weighted_loss(model, batch)]
        model.reset_metrics()
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)


@pytest.mark.parametrize("label", [-1, C])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_label_that_is_no_class_is_no_example_without_loss(label, smoothing):
    batch, model = batch_of(1, 23), model_of(label_smoothing=smoothing)
    batch["label"][0] = label
    for step in (model.train_step, model.test_step):
        try:
            assert np.isnan(step(batch)["loss"])
        except tf.errors.InvalidArgumentError as error:
            assert "label" in str(error)


def test_weights_of_examples_and_of_keras_are_multiplied():
    batch, model = batch_of(1, 23), model_of()
    features = {name: batch[name] for name in (*FEATURES, "weight")}
    shares = np.array([3, 1, 0.25, 2], np.float32)
    found = model.evaluate(features, batch["label"], sample_weight=shares, verbose=0)
    log_p = tf.nn.log_softmax(model(batch)["logits"]).numpy()[np.arange(U), batch["label"]]
    assert found == pytest.approx(-np.average(log_p, weights=WEIGHT * shares), rel=1e-5)


OTHERS_OF_ONE_LABEL = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("classification", "multiple_choice")
]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", ["regression", *OTHERS_OF_ONE_LABEL])
def test_labels_and_weights_may_be_columns_as_keras_has_them(name):
    """[rows, 1] is not broadcast against [rows], which is a loss of all pairs of rows."""
    model, _ = random_task(name)
    batch = batch_of(2 if name == "multiple_choice" else 1, 11)
    features, label = {"token_ids": batch["token_ids"]}, np.array([0, 1, 1, 0])
    model.compile(run_eagerly=True)
    losses = []
    for y in (label, label[:, None]):
        for weight in (WEIGHT, WEIGHT[:, None]):
            losses.append(model.evaluate(features, y, sample_weight=weight, verbose=0))
    losses.append(model.evaluate(features | {"weight": WEIGHT[:, None]}, y.tolist(), verbose=0))
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)
    assert losses[0] != pytest.approx(model.evaluate(features, label, verbose=0), rel=1e-3)
    several = np.ones([U, 2])
    for x, weight in ((features, several), (features | {"weight": several}, None)):
        with pytest.raises(ValueError, match=r"sample_weight: expected one for each row, got the"):
            model.evaluate(x, label, sample_weight=weight, verbose=0)


@pytest.mark.parametrize("shape", [[None], [None, 1], [None, None], None])
def test_columns_of_a_graph_are_vectors(shape):
    """Where the size of the second axis is not known, another one is an error."""
    graph = tf.function(as_vector, input_signature=[tf.TensorSpec(shape, tf.int32)])
    values = np.arange(3) if shape in ([None], None) else np.arange(3)[:, None]
    assert graph(tf.constant(values, tf.int32)).numpy().tolist() == [0, 1, 2]
    if shape == [None, None]:
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph(tf.zeros([3, 2], tf.int32))
